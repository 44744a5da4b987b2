package lockgate.spark;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.spark.sql.catalyst.trees.Origin;
import org.apache.spark.sql.execution.datasources.InsertIntoHadoopFsRelationCommand;
import scala.Tuple2;
import scala.collection.Iterator;

/**
 * Whether the transaction id that an insert has among its options is one that this write was given. Spark hands a write
 * the options of the table, of a temporary view, of the read behind a view, or of an earlier statement whose relation it
 * keeps, and does not say whose they are (FindDataSourceTable, InsertIntoHadoopFsRelationCommand). An id of these would
 * leave out all writes but the first. So of a write to a relation an id is its own only if its statement says so.
 */
final class GivenTransaction {
    private static final Pattern NAME = Pattern.compile("txn[^a-z0-9]*id['\"`]?\\s*=?\\s*", Pattern.CASE_INSENSITIVE);

    private GivenTransaction() {}

    static boolean isGiven(InsertIntoHadoopFsRelationCommand insert) {
        // A writer that writes to a path has no options but its own.
        return (insert.catalogTable().isEmpty() && insert.fileIndex().isEmpty()) || isInStatement(insert);
    }

    private static boolean isInStatement(InsertIntoHadoopFsRelationCommand insert) {
        String statement = statement(insert.origin());
        Iterator<Tuple2<String, String>> options = insert.options().iterator();
        while (options.hasNext()) {
            Tuple2<String, String> option = options.next();
            String letters = option._1().toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]", "");
            if (letters.endsWith("txnid") && !says(statement, option._2())) {
                return false;
            }
        }
        return true;
    }

    /** The text of a statement, without what else a script has; empty where the write is none of SQL's. */
    private static String statement(Origin origin) {
        if (origin.sqlText().isEmpty()) {
            return "";
        }
        String text = origin.sqlText().get();
        if (origin.startIndex().isEmpty() || origin.stopIndex().isEmpty()) {
            return text;
        }
        int start = (Integer) origin.startIndex().get();
        int stop = (Integer) origin.stopIndex().get();
        return 0 <= start && start <= stop && stop < text.length() ? text.substring(start, stop + 1) : text;
    }

    /** Whether it has the name with this value, or with the mark of a parameter, whose value it does not say. */
    private static boolean says(String statement, String value) {
        Matcher name = NAME.matcher(statement);
        while (name.find()) {
            String given = statement.substring(name.end());
            if (given.startsWith(":") || given.startsWith("?") || bare(given).startsWith(bare(value))) {
                return true;
            }
        }
        return false;
    }

    /** Without what writes a text down as a literal. */
    private static String bare(String text) {
        return text.replaceFirst("^[rR](?=['\"])", "").replaceAll("['\"\\\\]", "");
    }
}
