package ringhold.host;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;

/** One connection to the node. One thread reads, and answers pings; one writes; each open turn has one, which may block. */
final class Connection implements AutoCloseable {
    private static final int TURNS = 1024; // threads, at most
    private static final int BYTES = 16 << 20;
    private static final int FRAME_MAX = 256 << 20; // to a host
    private static final int BEHIND_MAX = 16 << 20; // what waits to be written before turns wait, too

    private final Host host;
    private final SocketChannel channel;
    private final DataInputStream in;
    private final ExecutorService threads = Executors.newCachedThreadPool(Connection::thread);
    private final Map<Long, Life> lives = new ConcurrentHashMap<>();
    private final Map<Integer, Host.Kind> kinds = new HashMap<>();
    private final Queue<byte[]> waiting = new ArrayDeque<>();
    private long waitingBytes;
    private boolean ended;
    private int frameMax = 65536;
    boolean welcomed;

    Connection(Host host) throws IOException {
        this.host = host;
        boolean unix = host.address.startsWith("unix:");
        int colon = host.address.lastIndexOf(':');
        channel = SocketChannel.open(unix ? UnixDomainSocketAddress.of(host.address.substring(5))
            : new InetSocketAddress(host.address.substring(0, colon), Integer.parseInt(host.address.substring(colon + 1))));
        in = new DataInputStream(new BufferedInputStream(Channels.newInputStream(channel), 1 << 16));
    }

    /** Until the connection ends. */
    void run() throws IOException {
        Wire.Out hello = new Wire.Out().text(1, "ringhold").number(2, 1).number(3, 1).text(4, host.name).text(5, host.token);
        for (Host.Kind kind : host.kinds.values()) {
            Wire.Out out = new Wire.Out().text(1, kind.name());
            for (Host.Has has : kind.has()) {
                out.number(2 + has.ordinal(), 1);
            }
            hello.message(6, out);
        }
        say(1, hello.message(7, new Wire.Out().number(1, TURNS).number(2, BYTES)));
        threads.execute(this::write);
        for (;;) {
            int size = in.readInt();
            if (size < 0 || size > FRAME_MAX) {
                throw new Wire.Malformed();
            }
            byte[] frame = in.readNBytes(size); // which grows as bytes come
            if (frame.length < size) {
                throw new java.io.EOFException("the connection ended");
            }
            for (Wire.In says : new Wire.In(ByteBuffer.wrap(frame)).messages(1)) {
                hear(says);
            }
        }
    }

    @Override
    public void close() throws IOException {
        synchronized (waiting) {
            ended = true;
            waiting.notifyAll();
        }
        channel.close();
        lives.values().forEach(Life::end);
        threads.shutdown();
    }

    /** Says one message of HostSays. A turn's thread waits while the node takes nothing. */
    void say(int field, Wire.Out body) {
        byte[] says = new Wire.Out().message(1, new Wire.Out().message(field, body)).take();
        synchronized (waiting) {
            if (says.length > frameMax) {
                throw new IllegalArgumentException("a step of " + says.length + " bytes");
            }
            while (field == 3 && waitingBytes > BEHIND_MAX && !ended) {
                try {
                    waiting.wait();
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt();
                    return; // the turn is over
                }
            }
            waiting.add(says);
            waitingBytes += says.length;
            waiting.notifyAll();
        }
    }

    private void write() {
        try {
            while (true) {
                ByteBuffer frame;
                synchronized (waiting) {
                    while (waiting.isEmpty() && !ended) {
                        waiting.wait();
                    }
                    if (ended) {
                        return;
                    }
                    List<byte[]> parts = new ArrayList<>();
                    int size = 0;
                    while (!waiting.isEmpty() && (size == 0 || size + waiting.peek().length <= frameMax)) {
                        size += waiting.peek().length;
                        parts.add(waiting.poll());
                    }
                    waitingBytes -= size;
                    waiting.notifyAll();
                    frame = ByteBuffer.allocate(4 + size).putInt(size);
                    parts.forEach(frame::put);
                }
                frame.flip();
                while (frame.hasRemaining()) {
                    channel.write(frame);
                }
            }
        } catch (IOException | InterruptedException e) {
            // The reading thread sees the end, too, and perhaps a Goodbye before it.
        }
    }

    private void hear(Wire.In says) throws IOException {
        int type = says.last(13);
        List<Wire.In> bodies = says.messages(type);
        if (bodies.isEmpty()) {
            throw new Wire.Malformed();
        }
        Wire.In body = bodies.get(bodies.size() - 1);
        switch (type) {
            case 1 -> welcome(body);
            case 2 -> goodbye(body);
            case 3 -> say(2, new Wire.Out().number(1, body.number(1)));
            case 4 -> activate(body);
            case 5, 6, 7, 8, 9, 10 -> turn(type, body);
            case 11 -> answer(body);
            case 12 -> {} // nothing was freed at the handoff
            case 13 -> {
                Life life = lives.remove(body.number(1));
                if (life != null) {
                    life.end();
                }
            }
            default -> throw new Wire.Malformed();
        }
    }

    private void welcome(Wire.In welcome) throws IOException {
        for (Wire.In served : welcome.messages(3)) {
            kinds.put((int) served.number(2), host.kinds.get(served.text(1)));
        }
        synchronized (waiting) {
            frameMax = (int) welcome.number(5);
        }
        welcomed = true;
    }

    private void goodbye(Wire.In goodbye) throws IOException {
        String text = goodbye.text(2);
        switch ((int) goodbye.number(1)) {
            case 1, 2, 3, 5, 7, 8, 9 -> throw new Host.Unwanted(text);
            default -> throw new IOException("the node says goodbye: " + text);
        }
    }

    private void activate(Wire.In activate) throws IOException {
        Host.Kind kind = kinds.get((int) activate.number(3));
        if (kind == null) {
            throw new Wire.Malformed();
        }
        Life life = new Life(this, activate.number(1));
        for (Wire.In value : activate.messages(9)) {
            life.values.put(value.bytes(1), value.bytes(2));
        }
        lives.put(life.activation, life);
        begin(life, activate.number(2), turn -> {
            life.actor = kind.make().get();
            life.actor.kind = (int) activate.number(3);
            life.actor.id = activate.bytes(4);
            life.actor.fence = activate.number(5);
            life.actor.start(turn, activate.flag(6) ? activate.bytes(7) : null);
            return null;
        }, 4);
    }

    private void turn(int type, Wire.In says) throws IOException {
        Life life = lives.get(says.number(1));
        if (life == null) {
            throw new Wire.Malformed();
        }
        begin(life, says.number(2), turn -> {
            Actor actor = life.actor;
            switch (type) {
                case 5 -> {
                    Value reply = actor.message(turn, new Actor.Message(says.bytes(3), says.all(4), says.flag(5), says.flag(6),
                        (int) says.number(7), says.bytes(8)));
                    return reply == null ? null : new Wire.Out().message(2, reply.out);
                }
                case 6 -> actor.timer(turn, says.number(3));
                case 7 -> actor.alarm(turn, says.bytes(3), says.bytes(4));
                case 8 -> actor.session(turn, new Actor.Session(Actor.Event.values()[(int) says.number(3)], (int) says.number(4),
                    says.number(5), says.number(6)));
                case 9 -> actor.flush(turn);
                default -> {
                    byte[] state = actor.handoff();
                    return state == null ? new Wire.Out().number(1, 3) : new Wire.Out().bytes(3, state);
                }
            }
            return null;
        }, type);
    }

    private interface Work {
        Wire.Out run(Turn turn) throws Exception;
    }

    private void begin(Life life, long number, Work work, int type) {
        life.running = threads.submit(() -> {
            synchronized (life) { // what the former turn's thread wrote is seen
                Turn turn = new Turn(life, number);
                Wire.Out done;
                try {
                    done = work.run(turn);
                    turn.step(done == null ? new Wire.Out() : done);
                    return;
                } catch (Refused e) {
                    turn.refuse();
                    done = switch (type) {
                        case 5 -> new Wire.Out().message(2, Value.error(e.getMessage()).out);
                        case 6 -> failed(e);
                        case 4 -> {
                            lives.remove(life.activation); // no Deactivate comes
                            yield new Wire.Out().number(1, 1);
                        }
                        case 10 -> new Wire.Out().number(1, 2);
                        default -> new Wire.Out().number(1, 1);
                    };
                } catch (Throwable e) {
                    if (!life.over) {
                        e.printStackTrace();
                    }
                    done = failed(e);
                }
                turn.step(done);
            }
        });
    }

    private static Wire.Out failed(Throwable e) {
        return new Wire.Out().number(1, 1).text(4, Value.oneLine("ERR " + e));
    }

    private void answer(Wire.In answer) throws IOException {
        Life life = lives.get(answer.number(1));
        CompletableFuture<byte[]> call = life == null ? null : life.calls.get(answer.number(2));
        if (call == null) {
            return;
        }
        byte[] payload = answer.bytes(4);
        if (answer.number(3) == 0) {
            call.complete(payload);
        } else {
            call.completeExceptionally(new Refused((int) answer.number(3), new String(payload, StandardCharsets.UTF_8)));
        }
    }

    private static Thread thread(Runnable run) {
        Thread thread = new Thread(run, "ringhold-host");
        thread.setDaemon(true);
        return thread;
    }
}
