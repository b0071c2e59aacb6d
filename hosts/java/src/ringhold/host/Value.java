package ringhold.host;

import java.nio.charset.StandardCharsets;

/** The answer to a message. */
public final class Value {
    public static final Value NIL = new Value(new Wire.Out().some(4, 1));

    final Wire.Out out;

    private Value(Wire.Out out) {
        this.out = out;
    }

    public static Value bytes(byte[] data) {
        return new Value(new Wire.Out().some(1, data));
    }

    public static Value bytes(String text) {
        return bytes(text.getBytes(StandardCharsets.UTF_8));
    }

    /** A line, such as {@code OK}. */
    public static Value line(String text) {
        return new Value(new Wire.Out().some(2, oneLine(text).getBytes(StandardCharsets.UTF_8)));
    }

    public static Value integer(long number) {
        return new Value(new Wire.Out().some(3, number << 1 ^ number >> 63));
    }

    static Value error(String text) {
        return new Value(new Wire.Out().some(5, oneLine(text).getBytes(StandardCharsets.UTF_8)));
    }

    /** Texts of the protocol have no CR, LF or NUL. */
    static String oneLine(String text) {
        return text.replace('\r', ' ').replace('\n', ' ').replace('\0', ' ');
    }
}
