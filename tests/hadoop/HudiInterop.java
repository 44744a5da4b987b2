import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.hadoop.conf.Configuration;
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

/** Hudi's own classes of markers, driven by JSON lines. Paths are local and absolute. */
public final class HudiInterop {
    private static final int PARALLELISM = 2;
    private static final int TIMEOUT_SECONDS = 30;

    private final HadoopStorageConfiguration configuration = new HadoopStorageConfiguration(new Configuration());
    private final HoodieEngineContext context = new HoodieLocalEngineContext(configuration);
    private TimelineService service;

    public static void main(String[] arguments) throws IOException {
        JsonLines.serve(new HudiInterop()::answer);
        System.exit(0); // the service has threads of its own
    }

    private Object answer(JsonNode request) throws Exception {
        switch (request.get("command").asText()) {
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

    private Object serve(JsonNode request) throws Exception {
        TimelineService.Config config = TimelineService.Config.builder()
                .serverPort(0)
                .enableMarkerRequests(true)
                .markerBatchIntervalMs(10)
                .markerBatchNumThreads(3)
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
