import java.io.IOException;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.util.zip.CRC32;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Files that a benchmark writes, and does not time.
 *
 * Local ones are written without Hadoop, which starts a chmod process for each where its native library is not there;
 * on the checksum file system each gets its checksum file, as Hadoop would write it.
 */
final class LocalFiles {
    private LocalFiles() {
    }

    /** A file at a path that nothing is at; its directories are made. */
    static void write(FileSystem fs, Path path, byte[] content) throws IOException {
        if (!"file".equals(fs.getUri().getScheme())) {
            try (OutputStream out = fs.create(path, false)) {
                out.write(content);
            }
            return;
        }
        java.nio.file.Path local = java.nio.file.Path.of(path.toUri().getPath());
        Files.createDirectories(local.getParent());
        Files.write(local, content);
        if (fs instanceof ChecksumFileSystem) {
            Files.write(local.resolveSibling("." + local.getFileName() + ".crc"), checksumFile(content));
        }
    }

    /** The format of ChecksumFileSystem: a magic number, the length of a chunk, a CRC-32 for every chunk. */
    static byte[] checksumFile(byte[] content) {
        int chunk = 512;
        ByteBuffer found = ByteBuffer.allocate(8 + 4 * ((content.length + chunk - 1) / chunk));
        found.put(new byte[] {'c', 'r', 'c', 0}).putInt(chunk);
        for (int at = 0; at < content.length; at += chunk) {
            CRC32 crc = new CRC32();
            crc.update(content, at, Math.min(chunk, content.length - at));
            found.putInt((int) crc.getValue());
        }
        return found.array();
    }
}
