import java.io.IOException;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;

/** A local disk that cannot be asked about the files of Lockgate's jobs, as a service whose answer does not come. */
public final class BlindFileSystem extends LocalFileSystem {
    @Override
    public FileStatus getFileStatus(Path path) throws IOException {
        if (path.toString().contains("/_lockgate/jobs/")) {
            throw new IOException("no answer");
        }
        return super.getFileStatus(path);
    }
}
