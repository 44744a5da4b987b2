import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hudi.common.config.HoodieCommonConfig;
import org.apache.hudi.common.config.HoodieMetadataConfig;
import org.apache.hudi.common.engine.HoodieEngineContext;
import org.apache.hudi.common.engine.HoodieLocalEngineContext;
import org.apache.hudi.common.model.IOType;
import org.apache.hudi.common.table.view.FileSystemViewManager;
import org.apache.hudi.common.table.view.FileSystemViewStorageConfig;
import org.apache.hudi.common.util.MarkerUtils;
import org.apache.hudi.storage.HoodieStorage;
import org.apache.hudi.storage.HoodieStorageUtils;
import org.apache.hudi.storage.hadoop.HadoopStorageConfiguration;
import org.apache.hudi.table.marker.DirectWriteMarkers;
import org.apache.hudi.table.marker.TimelineServerBasedWriteMarkers;
import org.apache.hudi.table.marker.WriteMarkers;
import org.apache.hudi.timeline.service.TimelineService;

/** Hudi's own classes of markers, driven by JSON lines. Paths are local and absolute, or URLs of Hadoop's. */
public final class HudiInterop {
    private static final int PARALLELISM = 2;
    private static final int TIMEOUT_SECONDS = 30;

    private final Configuration settings = new Configuration();
    private final HadoopStorageConfiguration configuration = new HadoopStorageConfiguration(settings);
    private final HoodieEngineContext context = new HoodieLocalEngineContext(configuration);
    private TimelineService service;

    public static void main(String[] arguments) throws IOException {
        JsonLines.serve(new HudiInterop()::answer);
        System.exit(0); // the service has threads of its own
    }

    private Object answer(JsonNode request) throws Exception {
        switch (request.get("command").asText()) {
            case "configure":
                request.get("settings").fields().forEachRemaining(
                        setting -> settings.set(setting.getKey(), setting.getValue().asText()));
                return true;
            case "marker_type":
                return MarkerUtils.readMarkerType(storage(request), directory(request)).map(Enum::name).orElse("");
            case "server_markers":
                return serverMarkers(request);
            case "all":
                return sorted(markers(request).allMarkerFilePaths());
            case "created_and_merged":
                return sorted(markers(request).createdAndMergedDataPaths(context, PARALLELISM));
            case "appended":
                return sorted(appended(markers(request)));
            case "exists":
                return markers(request).doesMarkerDirExist();
            case "create":
                return markers(request)
                        .create(text(request, "partition"), text(request, "file"), IOType.valueOf(text(request, "type")))
                        .isPresent();
            case "delete":
                return markers(request).deleteMarkerDir(context, PARALLELISM);
            case "write_uniform_tasks":
                return writeUniformTasks(request);
            case "reconcile":
                return reconcile(request);
            case "serve":
                return serve(request);
            case "stop":
                service.close();
                return true;
            default:
                throw new IllegalArgumentException("no such command: " + request);
        }
    }

    /** Through a timeline server where one is named, else directly. */
    private WriteMarkers markers(JsonNode request) throws Exception {
        String base = text(request, "base");
        String instant = text(request, "instant");
        if (!request.has("port")) {
            return HudiMade.by(
                    DirectWriteMarkers.class, new Object[] {storage(request), base, directory(request), instant});
        }
        // Public is only the one that asks a table, and so its whole configuration, for the address.
        String host = text(request, "host");
        int port = request.get("port").asInt();
        FileSystemViewStorageConfig address = FileSystemViewStorageConfig.newBuilder()
                .withRemoteServerHost(host)
                .withRemoteServerPort(port)
                .withRemoteTimelineClientTimeoutSecs(TIMEOUT_SECONDS)
                .build();
        return HudiMade.by(
                TimelineServerBasedWriteMarkers.class,
                new Object[] {base, directory(request), instant, address},
                new Object[] {base, directory(request), instant, host, port, TIMEOUT_SECONDS});
    }

    /** Hudi 1 has no such question: log files have markers of files that are created. */
    @SuppressWarnings("unchecked")
    private Set<String> appended(WriteMarkers markers) throws ReflectiveOperationException {
        return (Set<String>) WriteMarkers.class
                .getMethod("getAppendedLogPaths", HoodieEngineContext.class, int.class)
                .invoke(markers, context, PARALLELISM);
    }

    private Object serverMarkers(JsonNode request) throws IOException {
        Map<String, Object> found = new TreeMap<>();
        MarkerUtils.readTimelineServerBasedMarkersFromFileSystem(
                        directory(request), storage(request), context, PARALLELISM)
                .forEach((path, markers) -> found.put(path.substring(path.lastIndexOf('/') + 1), sorted(markers)));
        return found;
    }

    /** As Hudi's writers do: a marker, then the file at its final path; a task at a time on each thread. */
    private Object writeUniformTasks(JsonNode request) throws Exception {
        WriteMarkers markers = markers(request);
        int files = request.get("files").asInt();
        int directories = request.get("directories").asInt();
        byte[] content = new byte[request.get("bytes").asInt()];
        ExecutorService pool = Executors.newFixedThreadPool(request.get("threads").asInt());
        try {
            List<Future<Object>> written = new ArrayList<>();
            for (int number = 0; number < request.get("tasks").asInt(); number++) {
                int task = number;
                written.add(pool.submit(() -> {
                    for (int file = 0; file < files; file++) {
                        String partition = String.format("p=%02d", file % directories);
                        String name = String.format("part-%03d-%04d.bin", task, file);
                        markers.create(partition, name, IOType.CREATE);
                        Path path = new Path(text(request, "base") + "/" + partition + "/" + name);
                        LocalFiles.write(path.getFileSystem(configuration.unwrap()), path, content);
                    }
                    return true;
                }));
            }
            for (Future<Object> each : written) {
                each.get();
            }
        } finally {
            pool.shutdownNow();
        }
        return true;
    }

    /**
     * What a write does at its end with its markers (`HoodieTable.reconcileAgainstMarkers`, and after its commit): reads
     * them all, where nothing has to be deleted, and deletes them. Answers the seconds.
     */
    private Object reconcile(JsonNode request) throws Exception {
        WriteMarkers markers = markers(request);
        int parallelism = request.get("parallelism").asInt();
        long began = System.nanoTime();
        int found = markers.createdAndMergedDataPaths(context, parallelism).size();
        if (found != request.get("files").asInt() || !markers.deleteMarkerDir(context, parallelism)) {
            throw new IOException(found + " markers, or they could not be deleted");
        }
        return (System.nanoTime() - began) / 1e9;
    }

    private Object serve(JsonNode request) throws Exception {
        TimelineService.Config config = TimelineService.Config.builder()
                .serverPort(0)
                .enableMarkerRequests(true)
                .markerBatchIntervalMs(request.path("interval_ms").asInt(10))
                .markerBatchNumThreads(request.path("threads").asInt(3))
                .build();
        FileSystemViewStorageConfig views = FileSystemViewStorageConfig.newBuilder().build();
        HoodieCommonConfig common = HoodieCommonConfig.newBuilder().build();
        HoodieMetadataConfig metadata = HoodieMetadataConfig.newBuilder().build();
        FileSystemViewManager manager = HudiMade.byMethod(
                FileSystemViewManager.class,
                "createViewManager",
                new Object[] {context, metadata, views, common},
                new Object[] {context, views, common});
        service = HudiMade.by(
                TimelineService.class,
                new Object[] {context, configuration, config, manager},
                new Object[] {context, configuration.unwrap(), config, storage(request), manager});
        return service.startService();
    }

    private HoodieStorage storage(JsonNode request) {
        return HoodieStorageUtils.getStorage(text(request, "base"), configuration);
    }

    private static String directory(JsonNode request) {
        return text(request, "base") + "/.hoodie/.temp/" + text(request, "instant");
    }

    private static String text(JsonNode request, String name) {
        return request.get(name).asText();
    }

    private static Object sorted(Set<String> texts) {
        return new TreeSet<>(texts);
    }
}
