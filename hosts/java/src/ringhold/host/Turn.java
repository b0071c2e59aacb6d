package ringhold.host;

import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Collections;
import java.util.Deque;
import java.util.NavigableMap;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;

/**
 * What an actor can do in a turn. It leaves when the turn ends, or at a {@link #call}: each such part is a step, of a durable kind one commit.
 * Only the turn's own thread may use it.
 */
public final class Turn {
    private final Life life;
    private final long number;
    private final Deque<Runnable> undos = new ArrayDeque<>();
    private Wire.Out effects = new Wire.Out();

    Turn(Life life, long number) {
        this.life = life;
        this.number = number;
    }

    /** Asks another actor, and waits for its answer. What was done before is sent, and of a durable kind saved, first. */
    public byte[] call(int kind, byte[] id, byte[] payload, int timeoutMs) throws Refused, InterruptedException {
        long call = ++life.lastCall;
        CompletableFuture<byte[]> answer = new CompletableFuture<>();
        life.calls.put(call, answer);
        effect(1, new Wire.Out().number(1, call).number(2, kind).bytes(3, id).bytes(4, payload).number(5, timeoutMs));
        step(null);
        try {
            if (life.over) {
                throw new CancellationException();
            }
            return answer.get();
        } catch (ExecutionException e) {
            throw (Refused) e.getCause();
        } finally {
            life.calls.remove(call);
        }
    }

    /** Nobody answers, and it arrives at most once. */
    public void send(int kind, byte[] id, byte[] payload) {
        effect(2, new Wire.Out().number(1, kind).bytes(2, id).bytes(3, payload));
    }

    /** Of a durable kind: it arrives exactly once. */
    public void sendOnce(int kind, byte[] id, byte[] payload) {
        effect(3, new Wire.Out().number(1, kind).bytes(2, id).bytes(3, payload));
        undos.push(() -> {});
    }

    /** To all clients of the actor. */
    public void push(byte[] payload) {
        push(0, payload);
    }

    public void push(long session, byte[] payload) {
        effect(4, new Wire.Out().number(1, session).bytes(2, payload));
    }

    /** To the clients of other actors of one kind. */
    public void pushTo(int kind, Collection<byte[]> ids, byte[] payload) {
        Wire.Out out = new Wire.Out().number(1, kind);
        ids.forEach(id -> out.some(2, id));
        effect(5, out.bytes(3, payload));
    }

    /** Session 0: all. */
    public void kick(long session, int code, String text) {
        effect(6, new Wire.Out().number(1, session).number(2, code).text(3, Value.oneLine(text)));
    }

    public void rebind(long session, int kind, byte[] id) {
        effect(7, new Wire.Out().number(1, session).number(2, kind).bytes(3, id));
    }

    /** A durable actor's value, or null. */
    public byte[] get(String key) {
        byte[] value = life.values.get(utf8(key));
        return value == null ? null : value.clone();
    }

    /** All values of a durable actor, by key in the order of its bytes. The arrays are not to be written to. */
    public NavigableMap<byte[], byte[]> values() {
        return Collections.unmodifiableNavigableMap(life.values);
    }

    public void put(String key, byte[] value) {
        change(utf8(key), value.clone());
        effect(8, new Wire.Out().bytes(1, utf8(key)).bytes(2, value));
    }

    public void delete(String key) {
        change(utf8(key), null);
        effect(9, new Wire.Out().bytes(1, utf8(key)));
    }

    /** Takes back what this step has done so far to values and alarms, and by sendOnce. */
    public void undo() {
        undos.forEach(Runnable::run);
        undos.clear();
        effect(10, new Wire.Out());
    }

    /** Due at a time in ms since 1970, then each everyMs, if that is not 0. */
    public void setAlarm(String name, long dueMs, long everyMs, byte[] payload) {
        effect(11, new Wire.Out().bytes(1, utf8(name)).number(2, dueMs).number(3, everyMs).bytes(4, payload));
        undos.push(() -> {});
    }

    public void cancelAlarm(String name) {
        effect(12, new Wire.Out().bytes(1, utf8(name)));
        undos.push(() -> {});
    }

    public void startTimer(long timer, int ms, int everyMs) {
        effect(13, new Wire.Out().number(1, timer).number(2, ms).number(3, everyMs));
    }

    public void stopTimer(long timer) {
        effect(14, new Wire.Out().number(1, timer));
    }

    public void flushSoon() {
        effect(15, new Wire.Out());
    }

    /** The actor ends after this turn. */
    public void passivate() {
        effect(16, new Wire.Out());
    }

    /** What was refused leaves no changes behind. */
    void refuse() {
        if (!undos.isEmpty()) {
            undo();
        }
    }

    /** Sends what was done; done ends the turn, null does not. */
    void step(Wire.Out done) {
        Wire.Out step = new Wire.Out().number(1, life.activation).number(2, number).raw(effects);
        if (done != null) {
            step.message(4, done);
        }
        effects = new Wire.Out();
        undos.clear();
        if (!life.over) {
            life.connection.say(3, step);
        }
    }

    private void change(byte[] key, byte[] value) {
        byte[] old = value == null ? life.values.remove(key) : life.values.put(key, value);
        undos.push(() -> life.restore(key, old));
    }

    private void effect(int type, Wire.Out effect) {
        effects.message(3, new Wire.Out().message(type, effect));
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
