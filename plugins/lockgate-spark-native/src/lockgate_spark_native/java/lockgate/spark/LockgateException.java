package lockgate.spark;

/**
 * What stops a write in the driver, in words for the one who wrote it: what happened, where, what to do next. Tasks throw
 * Java's own IllegalStateException instead: where the jar was added to a running session, the thread of the driver that
 * reads the results of tasks does not load classes from it, and Spark would tell no more than UnknownReason.
 */
public final class LockgateException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    LockgateException(String text) {
        super(text);
    }

    LockgateException(String text, Throwable cause) {
        super(text, cause);
    }
}
