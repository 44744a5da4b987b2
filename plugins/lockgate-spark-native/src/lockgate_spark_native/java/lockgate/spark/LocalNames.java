package lockgate.spark;

import java.nio.file.InvalidPathException;
import org.apache.hadoop.fs.Path;

/**
 * Names that this JVM cannot give to files of a local disk, for want of a locale with their characters. The engine can:
 * what it put there Spark could not read, nor say that it is there.
 */
final class LocalNames {
    private LocalNames() {}

    /** Why what is at a place, or (`below` is not empty) at a path below it, cannot be named from here; else null. */
    static String refusal(Path place, String below) {
        if (!"file".equals(place.toUri().getScheme())) {
            return null;
        }
        try {
            java.nio.file.Path.of(place.toUri().getPath(), below);
            return null;
        } catch (InvalidPathException error) {
            return "Spark's JVM cannot name a file so: its locale has not these characters ("
                    + System.getProperty("sun.jnu.encoding") + ")\n  " + place + (below.isEmpty() ? "" : "/" + below)
                    + "\n  Next: start driver and executors with LC_ALL=C.UTF-8 in their environment";
        }
    }
}
