package shardaudit.tests;

import io.delta.storage.S3SingleDriverLogStore;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.s3a.RemoteFileChangedException;

/**
 * A multi-writer log store: a commit is a PUT with `If-None-Match: *`, which S3 grants to one alone.
 *
 * Janino compiles it, which comes with Spark: no JDK is needed, and no lambdas or type inference may
 * be used. A response that is lost and asked for again would be refused here, not recognized.
 */
public class ConditionalLogStore extends S3SingleDriverLogStore {
    public ConditionalLogStore(Configuration configuration) {
        super(configuration);
    }

    public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration)
            throws IOException {
        if (overwrite.booleanValue()) {
            super.write(path, actions, overwrite, configuration);
            return;
        }
        ByteArrayOutputStream lines = new ByteArrayOutputStream();
        while (actions.hasNext()) {
            lines.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
        }
        FileSystem store = path.getFileSystem(configuration);
        FSDataOutputStreamBuilder builder = store.createFile(path);
        builder.must("fs.option.create.conditional.overwrite", true);
        builder.overwrite(true);
        FSDataOutputStream output = (FSDataOutputStream) builder.build();
        output.write(lines.toByteArray());
        try {
            output.close();
        } catch (RemoteFileChangedException another) {
            throw new FileAlreadyExistsException(path.toString());
        }
    }
}
