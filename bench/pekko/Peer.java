// SPDX-License-Identifier: Apache-2.0

import com.typesafe.config.Config;
import com.typesafe.config.ConfigFactory;
import java.io.DataInputStream;
import java.io.BufferedInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Optional;
import org.apache.pekko.actor.AbstractActor;
import org.apache.pekko.actor.ActorRef;
import org.apache.pekko.actor.ActorSystem;
import org.apache.pekko.actor.Props;
import org.apache.pekko.cluster.Cluster;
import org.apache.pekko.cluster.sharding.ClusterSharding;
import org.apache.pekko.cluster.sharding.ClusterShardingSettings;
import org.apache.pekko.cluster.sharding.ShardRegion;
import org.apache.pekko.serialization.ByteBufferSerializer;
import org.apache.pekko.serialization.SerializerWithStringManifest;

/**
 * Pekko cluster sharding at the work that bench/peers gives: echo actors.
 *
 * <p>{@code Peer node SEED PORT FOLDER} hosts actors; those of kind 2 write what they are asked to FOLDER/PID.ran first.
 * {@code Peer front SEED PORT} is a member without actors, which speaks the packets of docs/protocol-client.md. SEED is the
 * port of the first node. A front tells instead of asking, with the request's number in the message, so there is no actor
 * for each request, and what answers come meanwhile leave in one write. SIGTERM: a node leaves by Coordinated Shutdown.
 */
public final class Peer {
  private static final int HELLO = 1, HELLO_ACK = 2, PING = 3, PONG = 4, REQUEST = 6, RESPONSE = 7, JOURNALED = 2, SHARDS = 100;

  record Ask(int request, short kind, String id, byte[] payload) {}

  record Answer(int request, byte[] payload) {}

  record Raw(byte[] packet) {}

  private static byte[] bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  /** Of our own, straight into the buffer that is sent. */
  public static final class Own extends SerializerWithStringManifest implements ByteBufferSerializer {
    @Override public int identifier() {
      return 7400;
    }

    @Override public String manifest(Object o) {
      return o instanceof Ask ? "q" : "a";
    }

    @Override public void toBinary(Object o, ByteBuffer out) {
      if (o instanceof Ask ask) {
        byte[] id = bytes(ask.id);
        out.putInt(ask.request).putShort(ask.kind).putShort((short) id.length).put(id);
        out.putInt(ask.payload.length).put(ask.payload);
      } else {
        Answer answer = (Answer) o;
        out.putInt(answer.request).putInt(answer.payload.length).put(answer.payload);
      }
    }

    private static byte[] take(ByteBuffer in, int size) {
      byte[] b = new byte[size];
      in.get(b);
      return b;
    }

    @Override public Object fromBinary(ByteBuffer in, String manifest) {
      int request = in.getInt();
      if (manifest.equals("a")) {
        return new Answer(request, take(in, in.getInt()));
      }
      short kind = in.getShort();
      String id = new String(take(in, in.getShort()), StandardCharsets.UTF_8);
      return new Ask(request, kind, id, take(in, in.getInt()));
    }

    @Override public byte[] toBinary(Object o) {
      ByteBuffer out = ByteBuffer.allocate(1 << 17);
      toBinary(o, out);
      out.flip();
      return take(out, out.remaining());
    }

    @Override public Object fromBinary(byte[] in, String manifest) {
      return fromBinary(ByteBuffer.wrap(in), manifest);
    }
  }

  static final class Echo extends AbstractActor {
    static FileOutputStream ran;

    @Override public Receive createReceive() {
      return receiveBuilder().match(Ask.class, this::on).build();
    }

    private void on(Ask ask) throws IOException {
      if (ask.kind == JOURNALED) {
        ran.write(bytes(new String(ask.payload, StandardCharsets.UTF_8) + "\n"));
      }
      getSender().tell(new Answer(ask.request, ask.payload), getSelf());
    }
  }

  private static final ShardRegion.MessageExtractor EXTRACTOR =
      new ShardRegion.HashCodeMessageExtractor(SHARDS) {
        @Override public String entityId(Object o) {
          return o instanceof Ask ask ? ask.id : null;
        }
      };

  /** Writes a connection's packets: all that wait in its mailbox at once. */
  static final class Writer extends AbstractActor {
    private final Socket socket;
    private ByteBuffer out = ByteBuffer.allocate(1 << 16);

    Writer(Socket socket) {
      this.socket = socket;
    }

    @Override public Receive createReceive() {
      return receiveBuilder()
          .match(Answer.class, a -> answer(a))
          .match(Raw.class, raw -> room(raw.packet.length).put(raw.packet))
          .matchEquals("flush", x -> flush())
          .build();
    }

    private void answer(Answer a) throws IOException {
      int size = 9 + a.payload.length;
      room(4 + size).putInt(RESPONSE << 24 | size).putInt(a.request).put((byte) 0).putInt(0).put(a.payload);
    }

    private ByteBuffer room(int size) throws IOException {
      if (out.remaining() < size) {
        flush();
      }
      if (out.position() == 0) {
        getSelf().tell("flush", getSelf());
      }
      return out;
    }

    private void flush() {
      try {
        socket.getOutputStream().write(out.array(), 0, out.position());
      } catch (IOException e) {
        getContext().stop(getSelf());
      }
      out.clear();
    }
  }

  private static Raw raw(int type, byte[] body) {
    return new Raw(ByteBuffer.allocate(4 + body.length).putInt(type << 24 | body.length).put(body).array());
  }

  private static void read(Socket socket, ActorRef region, ActorRef writer) {
    try (DataInputStream in = new DataInputStream(new BufferedInputStream(socket.getInputStream(), 1 << 16))) {
      while (true) {
        int head = in.readInt();
        byte[] body = in.readNBytes(head & 0xffffff);
        ByteBuffer b = ByteBuffer.wrap(body);
        switch (head >>> 24) {
          // Version 1, a heartbeat of 30 s, bodies of 64 KiB, 4,096 requests under way.
          case HELLO -> {
            ByteBuffer ack = ByteBuffer.allocate(24).putInt(1 << 24).putInt(30000).putInt(1 << 16).putInt(4096).putLong(1);
            writer.tell(raw(HELLO_ACK, ack.array()), ActorRef.noSender());
          }
          case PING -> writer.tell(raw(PONG, body), ActorRef.noSender());
          case REQUEST -> { // u32 request, u8 flags (0), u8 size of the id, u16 kind, id, payload
            int request = b.getInt();
            b.get();
            byte[] id = new byte[b.get() & 0xff];
            short kind = b.getShort();
            b.get(id);
            byte[] payload = new byte[b.remaining()];
            b.get(payload);
            region.tell(new Ask(request, kind, new String(id, StandardCharsets.UTF_8), payload), writer);
          }
          default -> throw new IOException("an unknown packet");
        }
      }
    } catch (IOException e) {
      writer.tell(org.apache.pekko.actor.PoisonPill.getInstance(), ActorRef.noSender());
    }
  }

  private static void serve(ActorSystem system, ActorRef region) {
    try (ServerSocket server = new ServerSocket(0, 1024, InetAddress.getByName("127.0.0.1"))) {
      ready.println("ready frames=127.0.0.1:" + server.getLocalPort());
      while (true) {
        Socket socket = server.accept();
        socket.setTcpNoDelay(true);
        ActorRef writer = system.actorOf(Props.create(Writer.class, () -> new Writer(socket)));
        new Thread(() -> read(socket, region, writer)).start();
      }
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  private static Config config(String role, String seed, String port) {
    return ConfigFactory.parseString(String.join("\n",
        "pekko.loglevel = WARNING",
        "pekko.actor.provider = cluster",
        "pekko.actor.serializers.own = \"Peer$Own\"",
        "pekko.actor.serialization-bindings { \"Peer$Ask\" = own, \"Peer$Answer\" = own }",
        "pekko.remote.artery { transport = tcp, canonical { hostname = 127.0.0.1, port = " + port + " } }",
        "pekko.cluster {",
        "  roles = [" + role + "]",
        "  seed-nodes = [\"pekko://bench@127.0.0.1:" + seed + "\"]",
        "  jmx.enabled = off",
        "  downing-provider-class = org.apache.pekko.cluster.sbr.SplitBrainResolverProvider",
        "  split-brain-resolver { active-strategy = keep-majority, stable-after = 7s }", // as advised for 5 nodes
        "  sharding {",
        "    role = node",
        "    rebalance-interval = 2s", // by default 10 s
        "    least-shard-allocation-strategy { rebalance-absolute-limit = 100, rebalance-relative-limit = 1.0 }",
        "  }",
        "}")).withFallback(ConfigFactory.load());
  }

  private static final java.io.PrintStream ready = System.out;

  public static void main(String[] args) throws IOException {
    System.setOut(System.err); // what is logged
    boolean node = args.length == 4 && args[0].equals("node");
    if (node) {
      Echo.ran = new FileOutputStream(args[3] + "/" + ProcessHandle.current().pid() + ".ran", true);
    } else if (args.length != 3 || !args[0].equals("front")) {
      System.err.println("usage: Peer node SEED PORT FOLDER | Peer front SEED PORT");
      System.exit(64);
    }
    ActorSystem system = ActorSystem.create("bench", config(args[0], args[1], args[2]));
    ClusterSharding sharding = ClusterSharding.get(system);
    ActorRef region = node
        ? sharding.start("echo", Props.create(Echo.class, Echo::new), ClusterShardingSettings.create(system), EXTRACTOR)
        : sharding.startProxy("echo", Optional.of("node"), EXTRACTOR);
    Cluster.get(system).registerOnMemberUp(() -> {
      if (node) {
        ready.println("ready");
      } else {
        new Thread(() -> serve(system, region)).start();
      }
    });
  }
}
