import java.io.IOException;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;

/** Hadoop's local files without checksums, whose renames can be told to fail from one on, as those of a dead process. */
public final class BreakableFiles extends RawLocalFileSystem {
    private static final AtomicInteger LEFT = new AtomicInteger(Integer.MAX_VALUE);

    /** The renames of all these file systems fail from the `number`-th on, counted from 1; 0: none does. */
    static void breakAtRename(int number) {
        LEFT.set(number == 0 ? Integer.MAX_VALUE : number);
    }

    @Override
    public boolean rename(Path source, Path target) throws IOException {
        if (LEFT.get() != Integer.MAX_VALUE && LEFT.decrementAndGet() <= 0) {
            throw new IOException("told to break before the rename of " + source);
        }
        return super.rename(source, target);
    }
}
