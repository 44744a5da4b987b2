package lockgate.spark;

/** What stops a write, in words for the one who wrote it: what happened, where, what to do next. */
public final class LockgateException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    LockgateException(String text) {
        super(text);
    }

    LockgateException(String text, Throwable cause) {
        super(text, cause);
    }
}
