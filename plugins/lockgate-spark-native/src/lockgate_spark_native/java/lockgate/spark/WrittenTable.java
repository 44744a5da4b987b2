package lockgate.spark;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.fs.Path;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.execution.QueryExecution;
import org.apache.spark.sql.execution.SQLExecution;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import scala.collection.Iterator;

/**
 * What Spark's catalog says of the table that a statement writes, if it writes one, and what the statement says of it.
 * Spark keeps the options of a statement that creates a table with the table, and hands them to each write to it as that
 * write's own (CreateDataSourceTableAsSelectCommand.saveDataIntoTable, InsertIntoHadoopFsRelationCommand); where the
 * table exists already, it does not pass on those of saveAsTable.
 */
final class WrittenTable {
    private WrittenTable() {}

    /** Of the write to this path, as NativeJob of the Python engine takes it. */
    static Map<String, Object> told(Path path) {
        Map<String, Object> told = new HashMap<>();
        QueryExecution own = running(execution(SQLExecution.EXECUTION_ID_KEY()));
        List<InsertIntoHadoopFsRelationCommand> inserts = own == null ? List.of() : inserts(own.logical(), path);
        told.put("gives_transaction", !inserts.isEmpty() && inserts.stream().allMatch(GivenTransaction::isGiven));
        if (inserts.isEmpty()) {
            return told;
        }
        InsertIntoHadoopFsRelationCommand insert = inserts.get(0);
        if (insert.catalogTable().isDefined()) {
            told.put("table", insert.catalogTable().get().identifier().unquotedString());
            told.put("table_options", options(insert.catalogTable().get()));
        }
        List<Creation> creations = creations(own, insert);
        if (!creations.isEmpty()) {
            Map<String, String> asked = new HashMap<>();
            creations.forEach(each -> asked.putAll(options(each.asked())));
            told.putIfAbsent("table", creations.get(0).asked().identifier().unquotedString());
            told.put("asked_options", asked);
            told.put("table_dropped", creations.stream().allMatch(each -> each.mode() == SaveMode.Overwrite));
        } else {
            // Spark makes each new table by an overwrite; what is not of a creation has the mode that the user gave.
            told.put("overwrites", inserts.stream().allMatch(each -> each.mode() == SaveMode.Overwrite));
            told.put("static_partition", inserts.stream().anyMatch(each -> !each.staticPartitions().isEmpty()));
        }
        return told;
    }

    /** Those of a statement that write there: FROM … INSERT … INSERT … is one statement, and may write twice to a table. */
    private static List<InsertIntoHadoopFsRelationCommand> inserts(LogicalPlan statement, Path path) {
        if (statement instanceof InsertIntoHadoopFsRelationCommand insert) {
            return List.of(insert);
        }
        List<InsertIntoHadoopFsRelationCommand> found = new ArrayList<>();
        if (statement instanceof Union) {
            Iterator<LogicalPlan> parts = statement.children().iterator();
            while (parts.hasNext()) {
                if (parts.next() instanceof InsertIntoHadoopFsRelationCommand insert
                        && insert.outputPath().toUri().getPath().equals(path.toUri().getPath())) {
                    found.add(insert);
                }
            }
        }
        return found;
    }

    /** What a statement that makes a table, or takes one that is there, asks for. */
    private record Creation(CatalogTable asked, SaveMode mode) {
        /** By what it holds: which classes these statements are, and what is first in them, differs within Spark 4. */
        static Creation of(LogicalPlan statement) {
            CatalogTable asked = null;
            SaveMode mode = null;
            Iterator<Object> parts = statement.productIterator();
            while (parts.hasNext()) {
                Object part = parts.next();
                asked = part instanceof CatalogTable table ? table : asked;
                mode = part instanceof SaveMode given ? given : mode;
            }
            return asked == null || mode == null ? null : new Creation(asked, mode);
        }

        /** Whether what is written there may be this table's: the statement that it makes says no more of it. */
        boolean isOf(InsertIntoHadoopFsRelationCommand insert) {
            if (insert.catalogTable().isDefined()) {
                return same(asked.identifier().table(), insert.catalogTable().get().identifier().table());
            }
            return asked.storage().locationUri().isDefined()
                    ? same(new Path(asked.storage().locationUri().get()).getName(), insert.outputPath().getName())
                    : same(asked.identifier().table(), insert.outputPath().getName());
        }

        private static boolean same(String one, String other) {
            return one.equalsIgnoreCase(other);
        }
    }

    /**
     * saveAsTable and CREATE TABLE … AS SELECT run the insert as a statement of its own, and where the table exists one
     * in between, which knows no option of the writer's. Spark says of no statement which one runs it: those are of
     * the same session, have begun before, and run still. The outermost is known; in a micro-batch it is the stream's.
     */
    private static List<Creation> creations(QueryExecution own, InsertIntoHadoopFsRelationCommand insert) {
        List<Creation> found = new ArrayList<>();
        long root = execution(SQLExecution.EXECUTION_ROOT_ID_KEY());
        for (long each = execution(SQLExecution.EXECUTION_ID_KEY()) - 1; root >= 0 && each >= root; each--) {
            QueryExecution around = running(each);
            boolean runs = around != null && around.sparkSession() == own.sparkSession();
            Creation creation = runs ? Creation.of(around.logical()) : null;
            // That in between holds what the catalog has of the table.
            if (creation != null && creation.isOf(insert) && !insert.catalogTable().contains(creation.asked())) {
                found.add(creation);
            }
        }
        return found;
    }

    private static Map<String, String> options(CatalogTable table) {
        Map<String, String> found = new HashMap<>();
        table.storage().properties().foreach(each -> found.put(each._1(), each._2()));
        return found;
    }

    private static long execution(String property) {
        String execution = SparkContext.getOrCreate().getLocalProperty(property);
        return execution == null ? -1 : Long.parseLong(execution);
    }

    private static QueryExecution running(long execution) {
        return execution < 0 ? null : SQLExecution.getQueryExecution(execution);
    }
}
