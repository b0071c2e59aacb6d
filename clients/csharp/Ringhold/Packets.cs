// SPDX-License-Identifier: Apache-2.0

using System;
using System.IO;
using System.Text;

namespace Ringhold
{
    /// <summary>Types of packets, as docs/protocol-client.md has them.</summary>
    internal static class PacketType
    {
        internal const byte Hello = 1, HelloAck = 2, Ping = 3, Pong = 4, Kick = 5, Request = 6, Response = 7, Notify = 8, Push = 9,
            Goaway = 10, Bind = 11, Unbind = 12, Auth = 13, Resume = 14, AuthOk = 15, Begun = 16, Ack = 17, Rebound = 18;
    }

    /// <summary>Flags of a request.</summary>
    internal static class Flag
    {
        internal const byte Idempotent = 1, Deadline = 2, Keep = 4, Again = 8;
    }

    /// <summary>The gateway sent something that makes no sense.</summary>
    internal sealed class InvalidPacketException : Exception
    {
    }

    /// <summary>A packet that is written: numbers are big endian.</summary>
    internal sealed class Writer
    {
        private readonly MemoryStream stream = new MemoryStream();
        private readonly byte type;

        internal Writer(byte type)
        {
            this.type = type;
            stream.SetLength(Packets.Head);
            stream.Position = Packets.Head;
        }

        internal Writer Number(ulong value, int size)
        {
            for (int i = size - 1; i >= 0; i--)
            {
                stream.WriteByte((byte)(value >> (8 * i)));
            }
            return this;
        }

        internal Writer Bytes(byte[] value)
        {
            stream.Write(value, 0, value.Length);
            return this;
        }

        internal byte[] Whole()
        {
            byte[] all = stream.ToArray();
            int size = all.Length - Packets.Head;
            all[0] = type;
            all[1] = (byte)(size >> 16);
            all[2] = (byte)(size >> 8);
            all[3] = (byte)size;
            return all;
        }
    }

    /// <summary>A body that is read. What is not there throws InvalidPacketException.</summary>
    internal struct Reader
    {
        private readonly byte[] body;
        private int at;

        internal Reader(byte[] body)
        {
            this.body = body;
            at = 0;
        }

        internal int Left => body.Length - at;

        internal ulong Number(int size)
        {
            ulong value = 0;
            foreach (byte b in Bytes(size))
            {
                value = value << 8 | b;
            }
            return value;
        }

        internal uint U32() => (uint)Number(4);

        internal byte[] Bytes(int size)
        {
            if (size > Left)
            {
                throw new InvalidPacketException();
            }
            var taken = new byte[size];
            Buffer.BlockCopy(body, at, taken, 0, size);
            at += size;
            return taken;
        }

        internal byte[] Rest() => Bytes(Left);

        internal string Text() => Encoding.UTF8.GetString(Rest());
    }

    /// <summary>Packets: how they are made, and cut from a stream of bytes.</summary>
    internal sealed class Packets
    {
        internal const int Head = 4, BodyMax = 0xffffff;
        private readonly int most;
        private byte[] held = new byte[0];
        private int from, to;

        internal Packets(int most)
        {
            this.most = most;
        }

        /// <summary>A request, notify, bind or resume.</summary>
        internal static byte[] Asking(byte type, uint name, byte[] id, ushort kind, byte flags, uint deadlineMs, byte[] payload)
        {
            if (deadlineMs > 0)
            {
                flags |= Flag.Deadline;
            }
            Writer w = new Writer(type).Number(name, 4).Number(flags, 1).Number((ulong)id.Length, 1).Number(kind, 2);
            if (deadlineMs > 0)
            {
                w.Number(deadlineMs, 4);
            }
            return w.Bytes(id).Bytes(payload).Whole();
        }

        internal void Put(byte[] data, int size)
        {
            if (to + size > held.Length)
            {
                var more = new byte[Math.Max(to - from + size, 1024)];
                Buffer.BlockCopy(held, from, more, 0, to - from);
                held = more;
                to -= from;
                from = 0;
            }
            Buffer.BlockCopy(data, 0, held, to, size);
            to += size;
        }

        /// <summary>Takes a whole packet; false: there is none yet.</summary>
        internal bool Next(out byte type, out byte[] body)
        {
            type = 0;
            body = null;
            if (to - from < Head)
            {
                return false;
            }
            int size = held[from + 1] << 16 | held[from + 2] << 8 | held[from + 3];
            if (size > most)
            {
                throw new InvalidPacketException();
            }
            if (to - from < Head + size)
            {
                return false;
            }
            type = held[from];
            body = new byte[size];
            Buffer.BlockCopy(held, from + Head, body, 0, size);
            from += Head + size;
            return true;
        }
    }
}
