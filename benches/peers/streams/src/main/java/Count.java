import com.networknt.schema.*;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.file.*;
import java.util.*;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.*;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.processor.api.*;
import org.apache.kafka.streams.state.*;
import tools.jackson.databind.*;
import tools.jackson.databind.json.JsonMapper;

/**
 * Count BROKERS TOPIC CONTRACTS DIR: the peer as an exactly-once topology that validates the arguments under both schemas,
 * compares them and counts by day and tool. Prints the CPU microseconds of an event in the second half, when the JVM is
 * warm.
 */
public class Count {
  static final ObjectMapper JSON = JsonMapper.builder().build();
  static final Map<String, Schema[]> CHECK = new HashMap<>();
  static final AtomicLong SEEN = new AtomicLong(), HALF_CPU = new AtomicLong();
  static long total;

  static int kind(JsonNode v) {
    return v.isNull() ? 0 : v.isBoolean() ? 1 : v.isNumber() ? 2 : v.isString() ? 3 : v.isArray() ? 4 : 5;
  }

  static boolean differs(JsonNode a, JsonNode b) {
    if (a.isObject() && b.isObject()) {
      if (a.size() != b.size()) return true;
      for (Map.Entry<String, JsonNode> e : a.properties()) {
        JsonNode other = b.get(e.getKey());
        if (other == null || differs(e.getValue(), other)) return true;
      }
      return false;
    }
    if (a.isArray() && b.isArray()) {
      if (a.size() != b.size()) return true;
      for (int i = 0; i < a.size(); i++) if (differs(a.get(i), b.get(i))) return true;
      return false;
    }
    return kind(a) != kind(b) || !a.equals(b);
  }

  static class Judge implements Processor<byte[], byte[], Void, Void> {
    KeyValueStore<String, byte[]> cells;

    public void init(ProcessorContext<Void, Void> context) {
      cells = context.getStateStore("cells");
    }

    public void process(org.apache.kafka.streams.processor.api.Record<byte[], byte[]> record) {
      JsonNode event = JSON.readTree(record.value());
      String tool = event.get("tool_id").stringValue();
      String key = event.get("ts").stringValue().substring(0, 10) + "|" + tool;
      JsonNode ours = event.get("arguments"), theirs = event.get("candidates").get(0).get("arguments");
      Schema[] both = CHECK.get(tool);
      boolean bad = both[0].validate(ours, OutputFormat.BOOLEAN) != both[1].validate(ours, OutputFormat.BOOLEAN);
      bad |= differs(ours, theirs);
      byte[] before = cells.get(key);
      long n = 0, k = 0;
      if (before != null) {
        ByteBuffer read = ByteBuffer.wrap(before);
        n = read.getLong();
        k = read.getLong();
      }
      cells.put(key, ByteBuffer.allocate(16).putLong(n + 1).putLong(k + (bad ? 1 : 0)).array());
      if (SEEN.incrementAndGet() == total / 2) HALF_CPU.set(cpu());
    }
  }

  public static void main(String[] args) throws Exception {
    String app = "count" + System.currentTimeMillis();
    Path state = Files.createTempDirectory(Path.of(args[3]), "streams");
    SchemaRegistry registry = SchemaRegistry.withDefaultDialect(SpecificationVersion.DRAFT_2020_12);
    for (Map.Entry<String, JsonNode> e : JSON.readTree(Files.readAllBytes(Path.of(args[2]))).properties()) {
      Schema[] both = { registry.getSchema(e.getValue().get(0)), registry.getSchema(e.getValue().get(1)) };
      for (Schema schema : both) schema.initializeValidators();
      CHECK.put(e.getKey(), both);
    }
    Properties config = new Properties();
    config.put("application.id", app);
    config.put("bootstrap.servers", args[0]);
    config.put("num.stream.threads", "1");
    config.put("state.dir", state.toString());
    config.put("replication.factor", "1");
    config.put("processing.guarantee", "exactly_once_v2");
    config.put("consumer.auto.offset.reset", "earliest");
    config.put("default.key.serde", Serdes.ByteArraySerde.class);
    config.put("default.value.serde", Serdes.ByteArraySerde.class);
    Topology topology = new Topology();
    topology.addSource("in", new ByteArrayDeserializer(), new ByteArrayDeserializer(), args[1]);
    topology.addProcessor("judge", Judge::new, "in");
    var store = Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("cells"), Serdes.String(), Serdes.ByteArray());
    topology.addStateStore(store.withCachingEnabled(), "judge");
    try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[0]))) {
      Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
      for (int i = 0; i < 6; i++) asked.put(new TopicPartition(args[1], i), OffsetSpec.latest());
      total = admin.listOffsets(asked).all().get().values().stream().mapToLong(x -> x.offset()).sum();
      long begun = System.nanoTime();
      KafkaStreams streams = new KafkaStreams(topology, config);
      streams.start();
      while (SEEN.get() < total) {
        if (System.nanoTime() - begun > 600e9) throw new IllegalStateException("too slow: " + SEEN.get());
        Thread.sleep(5);
      }
      double micros = (cpu() - HALF_CPU.get()) / 1e3 / (total - total / 2);
      System.out.printf(Locale.ROOT, "{\"events\":%d,\"warm_us\":%.3f}%n", total, micros);
      streams.close(java.time.Duration.ofSeconds(20));
    }
    try (var files = Files.walk(state)) {
      files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
    }
  }

  static long cpu() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }
}
