import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.commit.files.PendingSet;
import org.apache.hadoop.fs.s3a.commit.files.SinglePendingCommit;
import org.apache.hadoop.fs.s3a.commit.files.SuccessData;
import org.apache.hadoop.fs.s3a.commit.magic.MagicS3GuardCommitter;
import org.apache.hadoop.fs.s3a.commit.staging.DirectoryStagingCommitter;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.JobContextImpl;
import org.apache.hadoop.mapred.TaskAttemptContextImpl;
import org.apache.hadoop.mapred.TaskAttemptID;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;

/**
 * S3A's own committers and classes, driven by JSON lines: a request on stdin, an answer on stdout.
 *
 * A request is an object with "command" and that command's arguments; an answer is {"ok": ...} or {"error": ...}. The
 * first is "configure". Jobs that were set up stay known by their job id until the process ends.
 */
public final class S3aInterop {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TRACKER = "20260101";

    private final Configuration configuration = new Configuration();
    private final Map<String, S3aJob> jobs = new HashMap<>();

    public static void main(String[] arguments) throws IOException {
        JsonLines.serve(new S3aInterop()::answer);
    }

    private Object answer(JsonNode request) throws Exception {
        switch (request.get("command").asText()) {
            case "configure":
                request.get("settings").fields().forEachRemaining(
                        setting -> configuration.set(setting.getKey(), setting.getValue().asText()));
                return true;
            case "setup_job":
                String jobId = request.get("job_id").asText();
                jobs.put(jobId, new S3aJob(
                        request.get("committer").asText(), new Path(request.get("destination").asText()), jobId,
                        configuration));
                return true;
            case "write_task":
                return job(request).writeTask(
                        request.get("task").asInt(),
                        request.get("attempt").asInt(),
                        request.get("files"),
                        request.get("commit").asBoolean());
            case "write_uniform_tasks":
                return job(request).writeUniformTasks(
                        request.get("tasks").asInt(),
                        request.get("files").asInt(),
                        request.get("directories").asInt(),
                        request.get("bytes").asInt(),
                        request.get("threads").asInt());
            case "commit_job":
                return job(request).commit();
            case "abort_job":
                return job(request).abort();
            case "load_success":
                return loadSuccess(new Path(request.get("path").asText()));
            case "load_pending_set":
                return loadPendingSet(new Path(request.get("path").asText()));
            default:
                throw new IllegalArgumentException("unknown command " + request);
        }
    }

    private S3aJob job(JsonNode request) {
        return jobs.get(request.get("job_id").asText());
    }

    /** What S3A's own reader makes of a _SUCCESS. */
    private Map<String, Object> loadSuccess(Path path) throws IOException {
        SuccessData summary = SuccessData.load(path.getFileSystem(configuration), path);
        summary.validate();
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("name", summary.getName());
        found.put("success", summary.getSuccess());
        found.put("timestamp", summary.getTimestamp());
        found.put("date", summary.getDate());
        found.put("committer", summary.getCommitter());
        found.put("job_id", summary.getJobId());
        found.put("file_names", summary.getFilenames());
        found.put("metrics", summary.getMetrics());
        found.put("diagnostics", summary.getDiagnostics());
        found.put("counters",
                summary.getIOStatistics() == null ? Map.of() : summary.getIOStatistics().counters());
        return found;
    }

    /** The keys that S3A's own reader finds in a committed task's file. */
    private List<String> loadPendingSet(Path path) throws IOException {
        FileSystem fs = path.getFileSystem(configuration);
        List<String> keys = new ArrayList<>();
        for (SinglePendingCommit commit : PendingSet.load(fs, path, fs.getFileStatus(path)).getCommits()) {
            commit.validate();
            keys.add(commit.getDestinationKey());
        }
        return keys;
    }

    /** One job: "magic" and "directory" are S3A's committers, "v1" is FileOutputCommitter's first algorithm. */
    private static final class S3aJob {
        private final String kind;
        private final Path destination;
        private final JobConf configuration;
        private final FileSystem fs;
        private final org.apache.hadoop.mapred.JobID mapReduceId;
        private final JobContext context;
        private final PathOutputCommitter driver;

        S3aJob(String kind, Path destination, String jobId, Configuration settings) throws IOException {
            this.kind = kind;
            this.destination = destination;
            this.configuration = new JobConf(settings);
            configuration.set("spark.sql.sources.writeJobUUID", jobId);
            configuration.setInt("mapreduce.fileoutputcommitter.algorithm.version", 1);
            this.fs = destination.getFileSystem(configuration);
            this.mapReduceId = new org.apache.hadoop.mapred.JobID(TRACKER, 1);
            this.context = new JobContextImpl(configuration, mapReduceId);
            this.driver = committer(taskContext(0, 0));
            driver.setupJob(context);
        }

        private PathOutputCommitter committer(TaskAttemptContext task) throws IOException {
            switch (kind) {
                case "magic":
                    return new MagicS3GuardCommitter(destination, task);
                case "directory":
                    return new DirectoryStagingCommitter(destination, task);
                case "v1":
                    return new FileOutputCommitter(destination, task);
                default:
                    throw new IllegalArgumentException("unknown committer " + kind);
            }
        }

        /** A context with a configuration of its own: S3A's committers keep a task's paths in it. */
        private TaskAttemptContext taskContext(int task, int attempt) {
            TaskAttemptID id = new TaskAttemptID(
                    new org.apache.hadoop.mapred.TaskID(mapReduceId, TaskType.MAP, task), attempt);
            JobConf own = new JobConf(configuration);
            own.set("mapreduce.task.attempt.id", id.toString());
            return new TaskAttemptContextImpl(own, id);
        }

        /** Write an attempt's files, given as [relative path, content in base64]; commit it where asked to. */
        Object writeTask(int number, int attempt, JsonNode files, boolean commit) throws IOException {
            TaskAttemptContext task = taskContext(number, attempt);
            PathOutputCommitter committer = committer(task);
            committer.setupTask(task);
            for (JsonNode file : files) {
                write(committer.getWorkPath(), file.get(0).asText(), file.get(1).binaryValue());
            }
            if (commit) {
                commit(committer, task);
            }
            return true;
        }

        /** Write and commit tasks of files of one length spread over directories p=00, p=01, …; many tasks at once. */
        Object writeUniformTasks(int tasks, int files, int directories, int bytes, int threads) throws Exception {
            ExecutorService pool = Executors.newFixedThreadPool(threads);
            try {
                List<Future<Object>> written = new ArrayList<>();
                for (int number = 0; number < tasks; number++) {
                    int task = number;
                    written.add(pool.submit(() -> writeUniformTask(task, files, directories, bytes)));
                }
                for (Future<Object> each : written) {
                    each.get();
                }
            } finally {
                pool.shutdownNow();
            }
            return true;
        }

        private Object writeUniformTask(int number, int files, int directories, int bytes) throws IOException {
            TaskAttemptContext task = taskContext(number, 0);
            PathOutputCommitter committer = committer(task);
            committer.setupTask(task);
            byte[] content = new byte[bytes];
            for (int file = 0; file < files; file++) {
                write(
                        committer.getWorkPath(),
                        String.format("p=%02d/part-%03d-%04d.bin", file % directories, number, file),
                        content);
            }
            commit(committer, task);
            return true;
        }

        private void write(Path directory, String relative, byte[] content) throws IOException {
            // Path(parent, child) would see a scheme in a name with a colon.
            Path path = new Path(directory, new Path(null, null, relative));
            try (OutputStream out = path.getFileSystem(configuration).create(path, false)) {
                out.write(content);
            }
        }

        private static void commit(PathOutputCommitter committer, TaskAttemptContext task) throws IOException {
            if (!committer.needsTaskCommit(task)) {
                throw new IOException("Hadoop sees nothing to commit in " + task.getTaskAttemptID());
            }
            committer.commitTask(task);
        }

        Object commit() throws IOException {
            long began = System.nanoTime();
            driver.commitJob(context);
            return (System.nanoTime() - began) / 1e9;
        }

        Object abort() throws IOException {
            driver.abortJob(context, JobStatus.State.FAILED);
            return true;
        }
    }
}
