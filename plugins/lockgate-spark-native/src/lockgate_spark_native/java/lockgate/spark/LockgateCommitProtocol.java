package lockgate.spark;

import java.io.IOException;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.internal.io.FileCommitProtocol;
import org.apache.spark.internal.io.FileNameSpec;
import org.apache.spark.util.TaskCompletionListener;
import scala.Option;

/**
 * Spark's own writers commit through Lockgate: set spark.sql.sources.commitProtocolClass to this class.
 *
 * <p>It names files and tracks them. Everything else is the Python engine's: job setup, the conflict policy, job commit,
 * abort, recovery. A task's message says which files its attempt wrote; the driver's engine commits exactly the attempts
 * whose messages Spark hands to commitJob. What Spark would delete before an overwrite is noted here, and replaced by
 * the job commit, which brings it back if it fails.
 *
 * <p>The order of calls is that of FileCommitProtocol, but that deleteWithJob comes before setupJob
 * (InsertIntoHadoopFsRelationCommand.deleteMatchingPartitions), and that abortJob may come twice, and after commitJob
 * (FileFormatWriter.writeAndCommit).
 */
public final class LockgateCommitProtocol extends FileCommitProtocol implements Serializable {
    private static final long serialVersionUID = 1L;
    private static final String UUID_FORM = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";

    /**
     * As HiveTempPath and Hive name the directory of a query's output, whatever hive.exec.stagingdir says: its name goes
     * before, and may be empty.
     */
    private static final Pattern HIVES_STAGING =
            Pattern.compile("(.*_)?hive_[0-9]{4}(-[0-9]{2}){2}_[0-9]{2}(-[0-9]{2}){2}_.*", Pattern.DOTALL);

    /** What takes Lockgate out of one insert. */
    private static final String WITHOUT_LOCKGATE =
            "lockgate.spark.disable(spark) for this insert, in SQL SET spark.sql.sources.commitProtocolClass="
                    + "org.apache.spark.sql.execution.datasources.SQLHadoopMapReduceCommitProtocol";

    private static final long ROWS_UNKNOWN = -1;

    private final String sparkJobId;
    private final String path;
    private final boolean dynamic;
    private String root;
    private String tasks;
    private String marker;
    private String declarations;
    private String partMarker;
    private String driverNames = LocalNames.encoding();
    private ArrayList<String> schemes;
    private transient List<Path> overwritten = new ArrayList<>();
    private transient DriverJob job;
    private transient TaskFiles staged;

    /** As FileCommitProtocol.instantiate calls it. */
    public LockgateCommitProtocol(String jobId, String path, boolean dynamicPartitionOverwrite) {
        this.sparkJobId = jobId;
        this.path = path;
        this.dynamic = dynamicPartitionOverwrite;
    }

    /** Not in the constructor: Spark calls that by reflection, and what it throws then reaches nobody. */
    private void refuseWhatCannotBe() {
        String spark = SparkContext.getOrCreate().version();
        if (spark.startsWith("3.")) {
            throw new LockgateException("Spark's own writers commit through Lockgate from Spark 4.0 on, not in Spark "
                    + spark + "\n  Next: leave spark.sql.sources.commitProtocolClass at its default, or use Spark 4");
        }
        if (sparkJobId == null || !sparkJobId.matches(UUID_FORM)) {
            // A streaming sink gives the number of a batch, which other queries give as well.
            throw new LockgateException(
                    "a file sink of a stream cannot commit through Lockgate's native writers\n  " + path + " (batch " + sparkJobId + ")"
                            + "\n  Next: leave spark.sql.streaming.commitProtocolClass at its default; or write the"
                            + " stream with format(\"lockgate\"), once the empty _spark_metadata that Spark has made there"
                            + " is deleted");
        }
        if (path == null) {
            throw new LockgateException("a write without a path cannot commit through Lockgate\n  Next: give it a path");
        }
    }

    /** As FileCommitProtocol.instantiate calls it where there is no other. */
    public LockgateCommitProtocol(String jobId, String path) {
        this(jobId, path, false);
    }

    @Override
    public boolean deleteWithJob(FileSystem fs, Path path, boolean recursive) {
        overwritten.add(qualified(fs, path));
        return true;
    }

    @Override
    public void setupJob(JobContext context) {
        refuseWhatCannotBe();
        Configuration conf = context.getConfiguration();
        try {
            Path given = new Path(path);
            FileSystem fs = given.getFileSystem(conf);
            Path root = qualified(fs, given);
            refuseHiveStaging(root);
            driverNames = LocalNames.encoding();
            String refusal = LocalNames.refusal(root, "", driverNames);
            if (refusal != null) {
                throw new LockgateException(refusal);
            }
            List<String> replaced = new ArrayList<>();
            List<String> elsewhere = new ArrayList<>();
            for (Path each : overwritten) {
                if (isWithin(each, root)) {
                    replaced.add(below(each, root));
                } else {
                    elsewhere.add(each.toString());
                }
            }
            DriverJob made = new DriverJob(sparkJobId, root.toString(), dynamic, replaced, elsewhere, conf);
            Map<String, Object> answer = made.setUp();
            job = made;
            this.root = root.toString();
            tasks = (String) answer.get("tasks");
            marker = (String) answer.get("marker");
            declarations = new Path(root, (String) answer.get("locations")).toString();
            partMarker = (String) answer.get("part_marker");
            schemes = new ArrayList<>();
            ((List<?>) answer.get("schemes")).forEach(each -> schemes.add((String) each));
            Path marker = new Path(root, this.marker);
            if (!isSeen(fs, marker, made)) {
                made.abort();
                throw new LockgateException(
                        "Spark's filesystem does not see what Lockgate's store has written: they are not the same place"
                                + "\n  " + marker + "\n  " + fs.getUri() + " of " + fs.getClass().getName()
                                + "\n  Next: give both the same endpoint and account (spark.lockgate.store.*)");
            }
        } catch (IOException error) {
            throw new LockgateException("the job cannot be set up: " + error + "\n  " + path, error);
        }
    }

    /** Spark does not abort a job whose setup fails, and the engine would keep it at work for as long as this JVM runs. */
    private static boolean isSeen(FileSystem fs, Path marker, DriverJob made) throws IOException {
        try {
            return fs.exists(marker);
        } catch (IOException | RuntimeException error) {
            made.abort();
            throw error;
        }
    }

    @Override
    public void setupTask(TaskAttemptContext context) {
        TaskContext running = TaskContext.get();
        // Spark's own number of the attempt, which no other try of this application has, of whichever stage attempt.
        long attempt = running != null ? running.taskAttemptId() : context.getTaskAttemptID().getId();
        int task = context.getTaskAttemptID().getTaskID().getId();
        staged = new TaskFiles(task, attempt, new Path(root, tasks).toString(), new Path(root, marker).toString());
    }

    @Override
    public String newTaskTempFile(TaskAttemptContext context, Option<String> directory, String extension) {
        return newTaskTempFile(context, directory, new FileNameSpec("", extension));
    }

    @Override
    public String newTaskTempFile(TaskAttemptContext context, Option<String> directory, FileNameSpec spec) {
        return add(staged.below, new Path(root), directory.isDefined() ? directory.get() : "", context, spec);
    }

    @Override
    public String newTaskTempFileAbsPath(TaskAttemptContext context, String directory, String extension) {
        return newTaskTempFileAbsPath(context, directory, new FileNameSpec("", extension));
    }

    /** A partition in a location of its own: below the destination, if it is there; else a part of the job commits it. */
    @Override
    public String newTaskTempFileAbsPath(TaskAttemptContext context, String directory, FileNameSpec spec) {
        Path destination = new Path(root);
        Path location = new Path(directory);
        if (location.toUri().getScheme() == null) {
            throw new IllegalStateException("the location of a partition has no scheme\n  " + directory);
        }
        if (isWithin(location, destination)) {
            return add(staged.below, destination, below(location, destination), context, spec);
        }
        String scheme = location.toUri().getScheme().toLowerCase(Locale.ROOT);
        if (!schemes.contains(scheme)) {
            throw new IllegalStateException(
                    "a partition in a location of its own cannot be written through Lockgate: no store plugin here serves "
                            + scheme + ":// with renames\n  " + location + "\n  served: " + String.join(", ", schemes)
                            + "\n  Next: install the plugin of that store into the driver's Python; or "
                            + WITHOUT_LOCKGATE);
        }
        String url = location.toString();
        StagedFiles there =
                staged.at(
                        url,
                        new Path(location, tasks).toString(),
                        new Path(root, marker).toString(),
                        new Location(url, declarations, marker, partMarker));
        return add(there, location, "", context, spec);
    }

    /** Spark counts the files of a partition from 0; those of two partitions that share a directory get other names. */
    private String add(
            StagedFiles files, Path place, String directory, TaskAttemptContext context, FileNameSpec spec) {
        String base = context.getConfiguration().get("mapreduce.output.basename", "part");
        int split = context.getTaskAttemptID().getTaskID().getId();
        String name = spec.prefix() + String.format(Locale.ROOT, "%s-%05d-%s", base, split, sparkJobId);
        String prefix = directory.isEmpty() ? "" : directory + "/";
        String target = prefix + name + spec.suffix();
        for (int again = 1; files.has(target); again++) {
            target = prefix + name + "-" + again + spec.suffix();
        }
        // The driver's too: once the job has committed, its catalog looks for what is there.
        String refusal = LocalNames.refusal(place, target, LocalNames.encoding(), driverNames);
        if (refusal != null) {
            throw new IllegalStateException(refusal);
        }
        return files.add(target, context);
    }

    @Override
    public TaskCommitMessage commitTask(TaskAttemptContext context) {
        try {
            staged.list(context.getConfiguration());
            // An array, since what it holds may be replaced, and one of strings, since the driver's thread that reads
            // the results of tasks may not know this jar's classes.
            String[] told = {staged.message(ROWS_UNKNOWN)};
            tellRowsOnceTheyAreCounted(told, staged);
            return new TaskCommitMessage(told);
        } catch (IOException error) {
            throw new IllegalStateException("the task's files cannot be listed: " + error + "\n  " + tasks, error);
        }
    }

    /**
     * Spark sets the task's count of rows after this method (FileFormatDataWriter.commit, then
     * BasicWriteTaskStatsTracker.getFinalStats), and sends the message after the task's listeners were called
     * (Task.run, Executor.TaskRunner.run): so a listener completes it.
     */
    private static void tellRowsOnceTheyAreCounted(String[] told, TaskFiles staged) {
        TaskContext running = TaskContext.get();
        if (running != null) {
            running.addTaskCompletionListener((TaskCompletionListener) ended ->
                    told[0] = staged.message(ended.taskMetrics().outputMetrics().recordsWritten()));
        }
    }

    @Override
    public void abortTask(TaskAttemptContext context) {
        if (staged != null) {
            staged.discard(context.getConfiguration());
        }
    }

    @Override
    public void commitJob(JobContext context, scala.collection.immutable.Seq<TaskCommitMessage> messages) {
        List<String> told = new ArrayList<>();
        scala.collection.Iterator<TaskCommitMessage> each = messages.iterator();
        while (each.hasNext()) {
            told.add(((String[]) each.next().obj())[0]);
        }
        job.commit(told);
    }

    @Override
    public void abortJob(JobContext context) {
        if (job != null) {
            job.abort();
        }
    }

    private static Path qualified(FileSystem fs, Path given) {
        return fs.makeQualified(given);
    }

    private static String below(Path given, Path root) {
        String above = root.toUri().getPath();
        String path = given.toUri().getPath();
        return given.equals(root) ? "" : path.substring(above.endsWith("/") ? above.length() : above.length() + 1);
    }

    private static boolean isWithin(Path given, Path root) {
        for (Path each = given; each != null; each = each.getParent()) {
            if (each.equals(root)) {
                return true;
            }
        }
        return false;
    }

    /** Hive's inserts write to a staging directory, and Hive then moves what is there: that is not Lockgate's commit. */
    private static void refuseHiveStaging(Path root) {
        for (Path each = root; each != null; each = each.getParent()) {
            if (HIVES_STAGING.matcher(each.getName()).matches()) {
                throw new LockgateException(
                        "an insert into a Hive SerDe table cannot commit through Lockgate: Hive moves the files once more"
                                + "\n  " + root + "\n  Next: make the table USING parquet or orc, or let Spark convert it"
                                + " (spark.sql.hive.convertMetastoreParquet, …Orc); or " + WITHOUT_LOCKGATE);
            }
        }
    }
}
