import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.TaskContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.FileNameSpec;
import scala.Option;

/**
 * The commit protocol that the driver's system property DyingCommits names, on executors of which one dies: after the
 * first attempt at partition 1 has committed, and before its driver hears of it.
 */
public final class DyingCommits extends FileCommitProtocol implements java.io.Serializable {
    private static final long serialVersionUID = 1L;

    private final FileCommitProtocol real;

    public DyingCommits(String jobId, String path, boolean dynamic) {
        real = FileCommitProtocol.instantiate(System.getProperty("DyingCommits"), jobId, path, dynamic);
    }

    @Override
    public TaskCommitMessage commitTask(TaskAttemptContext context) {
        TaskCommitMessage message = real.commitTask(context);
        if (TaskContext.getPartitionId() == 1 && TaskContext.get().attemptNumber() == 0) {
            Runtime.getRuntime().halt(1);
        }
        return message;
    }

    @Override
    public void setupJob(JobContext context) {
        real.setupJob(context);
    }

    @Override
    public void commitJob(JobContext context, scala.collection.immutable.Seq<TaskCommitMessage> messages) {
        real.commitJob(context, messages);
    }

    @Override
    public void abortJob(JobContext context) {
        real.abortJob(context);
    }

    @Override
    public void setupTask(TaskAttemptContext context) {
        real.setupTask(context);
    }

    @Override
    public String newTaskTempFile(TaskAttemptContext context, Option<String> directory, String extension) {
        return real.newTaskTempFile(context, directory, extension);
    }

    @Override
    public String newTaskTempFile(TaskAttemptContext context, Option<String> directory, FileNameSpec spec) {
        return real.newTaskTempFile(context, directory, spec);
    }

    @Override
    public String newTaskTempFileAbsPath(TaskAttemptContext context, String directory, String extension) {
        return real.newTaskTempFileAbsPath(context, directory, extension);
    }

    @Override
    public String newTaskTempFileAbsPath(TaskAttemptContext context, String directory, FileNameSpec spec) {
        return real.newTaskTempFileAbsPath(context, directory, spec);
    }

    @Override
    public void abortTask(TaskAttemptContext context) {
        real.abortTask(context);
    }

    @Override
    public boolean deleteWithJob(FileSystem fs, Path path, boolean recursive) {
        return real.deleteWithJob(fs, path, recursive);
    }

    @Override
    public void onTaskCommit(TaskCommitMessage message) {
        real.onTaskCommit(message);
    }
}
