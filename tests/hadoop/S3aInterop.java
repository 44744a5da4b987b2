import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.commit.files.PendingSet;
import org.apache.hadoop.fs.s3a.commit.files.SinglePendingCommit;
import org.apache.hadoop.fs.s3a.commit.files.SuccessData;

/** Commands of CommitterInterop, and those that ask S3A's own readers. */
final class S3aInterop extends CommitterInterop {

    public static void main(String[] arguments) throws IOException {
        JsonLines.serve(new S3aInterop()::answer);
    }

    @Override
    Object answer(JsonNode request) throws Exception {
        switch (request.get("command").asText()) {
            case "load_success":
                return loadSuccess(new Path(request.get("path").asText()));
            case "load_pending_set":
                return loadPendingSet(new Path(request.get("path").asText()));
            default:
                return super.answer(request);
        }
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
}
