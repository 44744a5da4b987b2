package lockgate.spark;

import java.io.File;
import java.nio.charset.Charset;
import java.nio.charset.StandardCharsets;
import org.apache.hadoop.fs.Path;

/**
 * Names that a JVM cannot give to files of a local disk as the engine gives them, which is in UTF-8: for want of a locale
 * with their characters, or since its locale writes them otherwise. What the engine put there Spark could not read.
 */
final class LocalNames {
    private LocalNames() {}

    /** How this JVM writes the names of files. */
    static String encoding() {
        String encoding = System.getProperty("sun.jnu.encoding");
        return encoding == null || File.separatorChar != '/' ? StandardCharsets.UTF_8.name() : encoding;
    }

    /**
     * Why what is at a place, or (`below` is not empty) at a path below it, cannot be named from here, or from a JVM with
     * another encoding; else null.
     */
    static String refusal(Path place, String below, String... encodings) {
        if (!"file".equals(place.toUri().getScheme()) || isAscii(place.toUri().getPath() + below)) {
            return null;
        }
        for (String encoding : encodings) {
            if (!Charset.forName(encoding).equals(StandardCharsets.UTF_8)) {
                return "Spark's JVM cannot name a file so: its locale has not these characters, or writes them otherwise ("
                        + encoding + ")\n  " + place + (below.isEmpty() ? "" : "/" + below)
                        + "\n  Next: start driver and executors with LC_ALL=C.UTF-8 in their environment";
            }
        }
        return null;
    }

    private static boolean isAscii(String text) {
        return text.chars().allMatch(each -> each < 0x80);
    }
}
