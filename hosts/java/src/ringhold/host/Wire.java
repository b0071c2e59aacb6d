package ringhold.host;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** Protobuf, as much of it as wire/host.proto needs: numbers, bytes, messages in messages. */
final class Wire {
    private Wire() {}

    /** A message that is written. As proto3 has it, a number that is 0 and bytes that are empty are left out. */
    static final class Out {
        private final ByteArrayOutputStream data = new ByteArrayOutputStream(64);

        Out number(int field, long value) {
            return value == 0 ? this : some(field, value);
        }

        Out bytes(int field, byte[] value) {
            return value.length == 0 ? this : some(field, value);
        }

        Out text(int field, String value) {
            return bytes(field, value.getBytes(StandardCharsets.UTF_8));
        }

        Out message(int field, Out value) {
            varint((long) field << 3 | 2);
            varint(value.data.size());
            return raw(value);
        }

        /** A member of a oneof is written also if it is 0 or empty. */
        Out some(int field, long value) {
            varint((long) field << 3);
            varint(value);
            return this;
        }

        Out some(int field, byte[] value) {
            varint((long) field << 3 | 2);
            varint(value.length);
            data.writeBytes(value);
            return this;
        }

        /** Fields that were written before, as they are. */
        Out raw(Out fields) {
            data.writeBytes(fields.take());
            return this;
        }

        byte[] take() {
            return data.toByteArray();
        }

        private void varint(long value) {
            for (; (value & ~0x7fL) != 0; value >>>= 7) {
                data.write((int) value & 0x7f | 0x80);
            }
            data.write((int) value);
        }
    }

    private record Field(int number, long value, ByteBuffer bytes) {}

    /** A message that was read. A field that is not there is 0, false or empty; of several with one number the last one counts. */
    static final class In {
        private final List<Field> fields = new ArrayList<>();

        In(ByteBuffer data) throws Malformed {
            try {
                while (data.hasRemaining()) {
                    long tag = varint(data);
                    int type = (int) tag & 7;
                    long value = type == 1 ? 8 : type == 5 ? 4 : type == 0 || type == 2 ? varint(data) : -1;
                    if (type != 0 && (value < 0 || value > data.remaining()) || tag >>> 3 == 0) {
                        throw new Malformed();
                    }
                    ByteBuffer bytes = type == 0 ? null : data.slice(data.position(), (int) value);
                    data.position(data.position() + (bytes == null ? 0 : bytes.limit()));
                    fields.add(new Field((int) (tag >>> 3), value, bytes));
                }
            } catch (BufferUnderflowException e) {
                throw new Malformed();
            }
        }

        /** The number of the last field that is at most max: of a oneof the one that counts; 0: there is none. */
        int last(int max) {
            return fields.stream().mapToInt(Field::number).filter(number -> number <= max).reduce(0, (first, second) -> second);
        }

        long number(int field) throws Malformed {
            long found = 0;
            for (Field each : fields) {
                if (each.number == field) {
                    if (each.bytes != null) {
                        throw new Malformed();
                    }
                    found = each.value;
                }
            }
            return found;
        }

        boolean flag(int field) throws Malformed {
            return number(field) != 0;
        }

        byte[] bytes(int field) throws Malformed {
            List<byte[]> found = all(field);
            return found.isEmpty() ? new byte[0] : found.get(found.size() - 1);
        }

        String text(int field) throws Malformed {
            return new String(bytes(field), StandardCharsets.UTF_8);
        }

        List<byte[]> all(int field) throws Malformed {
            List<byte[]> found = new ArrayList<>();
            for (ByteBuffer each : slices(field)) {
                byte[] bytes = new byte[each.remaining()];
                each.get(bytes);
                found.add(bytes);
            }
            return found;
        }

        List<In> messages(int field) throws Malformed {
            List<In> found = new ArrayList<>();
            for (ByteBuffer each : slices(field)) {
                found.add(new In(each));
            }
            return found;
        }

        private List<ByteBuffer> slices(int field) throws Malformed {
            List<ByteBuffer> found = new ArrayList<>();
            for (Field each : fields) {
                if (each.number == field) {
                    if (each.bytes == null) {
                        throw new Malformed();
                    }
                    found.add(each.bytes.duplicate());
                }
            }
            return found;
        }

        private static long varint(ByteBuffer data) throws Malformed {
            long value = 0;
            for (int shift = 0; shift < 64; shift += 7) {
                byte next = data.get();
                value |= (long) (next & 0x7f) << shift;
                if (next >= 0) {
                    return value;
                }
            }
            throw new Malformed();
        }
    }

    /** What came is not a message of the protocol. */
    static final class Malformed extends IOException {
        private static final long serialVersionUID = 1;

        Malformed() {
            super("the node sent what is no message");
        }
    }
}
