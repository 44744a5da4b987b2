package lockgate.spark;

import java.util.HashMap;
import java.util.Map;
import org.apache.spark.SparkContext;
import org.apache.spark.sql.SaveMode;
import org.apache.spark.sql.catalyst.catalog.CatalogTable;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
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

    /** As NativeJob of the Python engine takes it. */
    static Map<String, Object> told() {
        Map<String, Object> told = new HashMap<>();
        if (statement(SQLExecution.EXECUTION_ID_KEY()) instanceof InsertIntoHadoopFsRelationCommand insert
                && insert.catalogTable().isDefined()) {
            told.put("table", insert.catalogTable().get().identifier().unquotedString());
            told.put("table_options", options(insert.catalogTable().get()));
        }
        // saveAsTable and CREATE TABLE … AS SELECT run the insert as a statement of its own.
        LogicalPlan statement = statement(SQLExecution.EXECUTION_ROOT_ID_KEY());
        if (statement != null && !(statement instanceof InsertIntoHadoopFsRelationCommand)) {
            tellOfCreation(told, statement);
        }
        return told;
    }

    /** By what they hold: which classes these statements are, and what is first in them, is not the same in all of Spark 4. */
    private static void tellOfCreation(Map<String, Object> told, LogicalPlan statement) {
        CatalogTable asked = null;
        SaveMode mode = null;
        Iterator<Object> parts = statement.productIterator();
        while (parts.hasNext()) {
            Object part = parts.next();
            asked = part instanceof CatalogTable table ? table : asked;
            mode = part instanceof SaveMode given ? given : mode;
        }
        if (asked != null && mode != null) {
            told.putIfAbsent("table", asked.identifier().unquotedString());
            told.put("asked_options", options(asked));
            told.put("table_dropped", mode == SaveMode.Overwrite);
        }
    }

    private static Map<String, String> options(CatalogTable table) {
        Map<String, String> found = new HashMap<>();
        table.storage().properties().foreach(each -> found.put(each._1(), each._2()));
        return found;
    }

    private static LogicalPlan statement(String property) {
        String execution = SparkContext.getOrCreate().getLocalProperty(property);
        QueryExecution found = execution == null ? null : SQLExecution.getQueryExecution(Long.parseLong(execution));
        return found == null ? null : found.logical();
    }
}
