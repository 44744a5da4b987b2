package lockgate.spark;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * A partition's directory that Spark's plan names and that is not below the table's. A task declares it in the job's own
 * directory before it makes anything there, so that whoever ends the job knows of it, and leaves the marker there of the
 * job's part, which says whose it is (lockgate.engine.job.locations).
 */
final class Location {
    private final String url;
    private final Path declaration;
    private final Path marker;
    private final byte[] content;

    Location(String url, String declarations, String marker, String content) {
        this.url = url;
        this.declaration = new Path(declarations, "_" + sha256(url));
        this.marker = new Path(url, marker);
        this.content = content.getBytes(StandardCharsets.UTF_8);
    }

    void declare(Configuration conf) throws IOException {
        writeIfAbsent(declaration, url.getBytes(StandardCharsets.UTF_8), conf);
    }

    void mark(Configuration conf) throws IOException {
        writeIfAbsent(marker, content, conf);
    }

    /** Tasks write one and the same, so whose is there does not matter; but nobody must see half of it. */
    private static void writeIfAbsent(Path path, byte[] content, Configuration conf) throws IOException {
        FileSystem fs = path.getFileSystem(conf);
        if (fs.exists(path)) {
            return;
        }
        String nonce = UUID.randomUUID().toString().replace("-", "");
        Path made = new Path(path.getParent(), ".lockgate-" + nonce + ".tmp");
        try (OutputStream out = fs.create(made, true)) {
            out.write(content);
        }
        IOException refused = null;
        try {
            if (fs.rename(made, path)) {
                return;
            }
        } catch (IOException error) {
            refused = error;
        }
        if (!fs.exists(path)) {
            throw new IOException("cannot be put in place: " + path, refused);
        }
        fs.delete(made, false);
    }

    private static String sha256(String text) {
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.getBytes(StandardCharsets.UTF_8));
            return HexFormat.of().formatHex(digest);
        } catch (NoSuchAlgorithmException error) {
            throw new IllegalStateException(error);
        }
    }
}
