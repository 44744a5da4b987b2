import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFileSystem;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.statistics.IOStatisticsSnapshot;
import org.apache.hadoop.mapred.JobContextImpl;
import org.apache.hadoop.mapred.JobConf;
import org.apache.hadoop.mapred.TaskAttemptContextImpl;
import org.apache.hadoop.mapred.TaskAttemptID;
import org.apache.hadoop.mapreduce.JobContext;
import org.apache.hadoop.mapreduce.JobStatus;
import org.apache.hadoop.mapreduce.TaskAttemptContext;
import org.apache.hadoop.mapreduce.TaskType;
import org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.PathOutputCommitter;
import org.apache.hadoop.mapreduce.lib.output.committer.manifest.ManifestCommitter;
import org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.DirEntry;
import org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.FileEntry;
import org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.ManifestPrinter;
import org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.ManifestSuccessData;
import org.apache.hadoop.mapreduce.lib.output.committer.manifest.files.TaskManifest;
import org.apache.hadoop.util.NativeCodeLoader;

/**
 * Hadoop's own committers and manifest classes, driven by JSON lines: a request on stdin, an answer on stdout.
 *
 * A request is an object with "command" and that command's arguments; an answer is {"ok": ...} or {"error": ...}.
 * Paths are local and absolute. Jobs that were set up stay known by their job id until the process ends, so that a
 * caller can do something of its own between the commit of the tasks and the commit of the job.
 */
public final class HadoopInterop {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String TRACKER = "20260101";

    private final Map<String, HadoopJob> jobs = new HashMap<>();

    public static void main(String[] arguments) throws IOException {
        JsonLines.serve(new HadoopInterop()::answer);
    }

    private Object answer(JsonNode request) throws Exception {
        switch (request.get("command").asText()) {
            case "load_task_manifest":
                return loadTaskManifest(path(request, "path"));
            case "save_task_manifest":
                return saveTaskManifest(path(request, "path"), path(request, "copy"));
            case "load_success":
                return loadSuccess(path(request, "path"));
            case "print_success":
                return printSuccess(path(request, "path"));
            case "setup_job":
                return setUp(request);
            case "write_task":
                return job(request).writeTask(
                        request.get("task").asInt(),
                        request.get("attempt").asInt(),
                        request.get("files"),
                        request.get("commit").asBoolean());
            case "write_uniform_task":
                return job(request).writeUniformTask(
                        request.get("task").asInt(),
                        request.get("files").asInt(),
                        request.get("directories").asInt(),
                        request.get("bytes").asInt());
            case "native_library":
                return NativeCodeLoader.isNativeCodeLoaded();
            case "commit_task":
                return job(request).commitTask(request.get("task").asInt(), request.get("attempt").asInt());
            case "break_at_rename":
                BreakableFiles.breakAtRename(request.get("number").asInt());
                return true;
            case "recover_task":
                return job(request).recoverTask(request.get("task").asInt());
            case "commit_job":
                return job(request).commit();
            case "abort_job":
                return job(request).abort();
            case "read_file":
                return readFile(path(request, "path"));
            default:
                throw new IllegalArgumentException("unknown command " + request);
        }
    }

    private static Map<String, Object> loadTaskManifest(Path path) throws IOException {
        FileSystem fs = local(false);
        TaskManifest manifest = TaskManifest.load(TaskManifest.serializer(), fs, path, fs.getFileStatus(path));
        manifest.validate();
        List<Map<String, Object>> files = new ArrayList<>();
        for (FileEntry entry : manifest.getFilesToCommit()) {
            entry.validate();
            Map<String, Object> file = new LinkedHashMap<>();
            file.put("source", entry.getSourcePath().toUri().getPath());
            file.put("target", entry.getDestPath().toUri().getPath());
            file.put("length", entry.getSize());
            file.put("identity", entry.getEtag());
            files.add(file);
        }
        List<String> directories = new ArrayList<>();
        for (DirEntry entry : manifest.getDestDirectories()) {
            directories.add(entry.getDestPath().toUri().getPath());
        }
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("type", manifest.getType());
        found.put("version", manifest.getVersion());
        found.put("job_id", manifest.getJobId());
        found.put("job_attempt", manifest.getJobAttemptNumber());
        found.put("task_id", manifest.getTaskID());
        found.put("task_attempt_id", manifest.getTaskAttemptID());
        found.put("bytes_total", manifest.getTotalFileSize());
        found.put("files", files);
        found.put("directories", directories);
        found.put("counters", counters(manifest.getIOStatistics()));
        return found;
    }

    /** Load a manifest and save it again as Hadoop writes it: how another writer would have put the same content. */
    private static Object saveTaskManifest(Path path, Path copy) throws IOException {
        FileSystem fs = local(false);
        TaskManifest.load(fs, path).save(fs, copy, true);
        return true;
    }

    private static Map<String, Object> loadSuccess(Path path) throws IOException {
        ManifestSuccessData summary = ManifestSuccessData.load(local(false), path);
        summary.validate();
        List<String> names = new ArrayList<>();
        for (Path name : summary.getFilenamePaths()) {
            names.add(name.toUri().getPath());
        }
        Map<String, Object> found = new LinkedHashMap<>();
        found.put("name", summary.getName());
        found.put("success", summary.getSuccess());
        found.put("timestamp", summary.getTimestamp());
        found.put("date", summary.getDate());
        found.put("hostname", summary.getHostname());
        found.put("committer", summary.getCommitter());
        found.put("job_id", summary.getJobId());
        found.put("job_id_source", summary.getJobIdSource());
        found.put("diagnostics", summary.getDiagnostics());
        found.put("file_names", names);
        found.put("counters", counters(summary.getIOStatistics()));
        return found;
    }

    private static String printSuccess(Path path) throws Exception {
        ByteArrayOutputStream printed = new ByteArrayOutputStream();
        try (PrintStream out = new PrintStream(printed, true, StandardCharsets.UTF_8)) {
            ManifestPrinter printer = new ManifestPrinter(configuration(false), out);
            int status = printer.run(new String[] {path.toString()});
            if (status != 0) {
                throw new IOException("ManifestPrinter ended with status " + status);
            }
        }
        return printed.toString(StandardCharsets.UTF_8);
    }

    private static String readFile(Path path) throws IOException {
        try (var in = local(false).open(path)) {
            return java.util.Base64.getEncoder().encodeToString(in.readAllBytes());
        }
    }

    private static Map<String, Long> counters(IOStatisticsSnapshot statistics) {
        return statistics == null ? Map.of() : new HashMap<>(statistics.counters());
    }

    private Object setUp(JsonNode request) throws IOException {
        String jobId = request.get("job_id").asText();
        boolean raw = request.path("raw_file_system").asBoolean(false);
        int attempt = request.path("job_attempt").asInt(0);
        String committer = request.get("committer").asText();
        JobConf own = configuration(raw);
        if (request.path("breakable").asBoolean(false)) {
            own.set("fs.file.impl", BreakableFiles.class.getName());
            own.setBoolean("fs.file.impl.disable.cache", true);
        }
        int number = request.path("number").asInt(1);
        jobs.put(jobId, new HadoopJob(committer, path(request, "destination"), jobId, own, number, attempt));
        return true;
    }

    private HadoopJob job(JsonNode request) {
        return jobs.get(request.get("job_id").asText());
    }

    private static Path path(JsonNode request, String name) {
        return local(request.get(name).asText());
    }

    /** A path taken literally: unlike new Path(text), this never sees a scheme in a name with a colon. */
    private static Path local(String absolute) {
        return new Path("file", "", absolute);
    }

    private static FileSystem local(boolean raw) throws IOException {
        return FileSystem.get(local("/").toUri(), configuration(raw));
    }

    /** Hadoop's defaults, where `file:` keeps a checksum file beside every file; or its local file system without. */
    private static JobConf configuration(boolean raw) {
        Configuration configuration = new Configuration();
        if (raw) {
            configuration.set("fs.file.impl", "org.apache.hadoop.fs.RawLocalFileSystem");
            configuration.setBoolean("fs.file.impl.disable.cache", true);
        }
        return new JobConf(configuration);
    }

    /** One job of a Hadoop committer: "manifest", or "v1" and "v2" for FileOutputCommitter's algorithms. */
    private static final class HadoopJob {
        private final String kind;
        private final Path destination;
        private final JobConf configuration;
        private final FileSystem fs;
        private final org.apache.hadoop.mapred.JobID mapReduceId;
        private final JobContext context;
        private final PathOutputCommitter driver;

        HadoopJob(String kind, Path destination, String jobId, JobConf own, int number, int attempt) throws IOException {
            this.kind = kind;
            this.destination = destination;
            this.configuration = own;
            configuration.set("spark.sql.sources.writeJobUUID", jobId);
            configuration.setInt("mapreduce.fileoutputcommitter.algorithm.version", kind.equals("v2") ? 2 : 1);
            configuration.setInt("mapreduce.job.application.attempt.id", attempt);
            this.fs = destination.getFileSystem(configuration);
            this.mapReduceId = new org.apache.hadoop.mapred.JobID(TRACKER, number);
            this.context = new JobContextImpl(configuration, mapReduceId);
            this.driver = committer(taskContext(0, 0));
            driver.setupJob(context);
        }

        private PathOutputCommitter committer(TaskAttemptContext task) throws IOException {
            switch (kind) {
                case "manifest":
                    return new ManifestCommitter(destination, task);
                case "v1", "v2":
                    return new FileOutputCommitter(destination, task);
                default:
                    throw new IllegalArgumentException("unknown committer " + kind);
            }
        }

        private TaskAttemptContext taskContext(int task, int attempt) {
            return new TaskAttemptContextImpl(
                    configuration,
                    new TaskAttemptID(new org.apache.hadoop.mapred.TaskID(mapReduceId, TaskType.MAP, task), attempt));
        }

        /** Write an attempt's files, given as [relative path, content in base64]; commit it where asked to. */
        Object writeTask(int number, int attempt, JsonNode files, boolean commit) throws IOException {
            TaskAttemptContext task = taskContext(number, attempt);
            PathOutputCommitter committer = committer(task);
            committer.setupTask(task);
            for (JsonNode file : files) {
                write(committer.getWorkPath(), file.get(0).asText(), file.get(1).binaryValue());
            }
            return commit ? secondsToCommit(committer, task) : 0.0;
        }

        /**
         * Write files of one length spread over directories d=0, d=1, …; commit the task; answer the seconds.
         *
         * The files are written without Hadoop, which starts a chmod process for each where its native library is
         * not there; on the checksum file system each gets its checksum file, as Hadoop would write it.
         */
        Object writeUniformTask(int number, int files, int directories, int bytes) throws IOException {
            TaskAttemptContext task = taskContext(number, 0);
            PathOutputCommitter committer = committer(task);
            committer.setupTask(task);
            boolean checksums = fs instanceof ChecksumFileSystem;
            java.nio.file.Path work = java.nio.file.Path.of(committer.getWorkPath().toUri().getPath());
            byte[] content = new byte[bytes];
            for (int file = 0; file < files; file++) {
                java.nio.file.Path directory = work.resolve("d=" + file % directories);
                String name = String.format("part-%05d-%05d.bin", number, file);
                if (file < directories) {
                    Files.createDirectories(directory);
                }
                Files.write(directory.resolve(name), content);
                if (checksums) {
                    Files.write(directory.resolve("." + name + ".crc"), LocalFiles.checksumFile(content));
                }
            }
            return secondsToCommit(committer, task);
        }

        private void write(Path directory, String relative, byte[] content) throws IOException {
            try (OutputStream out = fs.create(local(directory.toUri().getPath() + "/" + relative), false)) {
                out.write(content);
            }
        }

        private static double secondsToCommit(PathOutputCommitter committer, TaskAttemptContext task)
                throws IOException {
            if (!committer.needsTaskCommit(task)) {
                throw new IOException("Hadoop sees nothing to commit in " + task.getTaskAttemptID());
            }
            long began = System.nanoTime();
            committer.commitTask(task);
            return (System.nanoTime() - began) / 1e9;
        }

        /** Commit an attempt that was only written. */
        Object commitTask(int number, int attempt) throws IOException {
            TaskAttemptContext task = taskContext(number, attempt);
            return secondsToCommit(committer(task), task);
        }

        /** Take over what the task has committed in the attempt before. */
        Object recoverTask(int number) throws IOException {
            TaskAttemptContext task = taskContext(number, 0);
            committer(task).recoverTask(task);
            return true;
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
