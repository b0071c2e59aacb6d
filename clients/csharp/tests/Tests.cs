// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.IO;
using System.Reflection;
using System.Text;
using System.Text.RegularExpressions;
using System.Threading.Tasks;
using Ringhold;

/// <summary>
/// The bytes of the protocol's page, and how long the client waits, on a clock and lines of this test. It is built with the client's
/// sources: mcs Ringhold/*.cs tests/Tests.cs -out:Tests.exe; mono Tests.exe docs/protocol-client.md
/// </summary>
internal static class Tests
{
    private sealed class TestLine : ILine
    {
        internal readonly Rig Rig;
        internal readonly List<byte[]> Sent = new List<byte[]>();
        internal int Waits;
        internal bool Closed;

        internal TestLine(Rig rig)
        {
            Rig = rig;
        }

        public int Unread => Waits;
        public void Send(byte[] data) => Sent.Add(data);
        public void Close() => Closed = true;

        internal void Hears(byte[] data)
        {
            Rig.Client.Happens(() => Rig.Client.OnBytes(this, data, data.Length));
            Rig.Client.Update();
        }

        internal void Hears(byte type, ulong number, int size, string text = "") =>
            Hears(new Writer(type).Number(number, size).Bytes(Encoding.UTF8.GetBytes(text)).Whole());

        internal void Greets(uint heartbeatMs = 0)
        {
            Rig.Client.Happens(() => Rig.Client.OnOpened(this));
            Hears(new Writer(PacketType.HelloAck).Number(1, 1).Number(0, 3).Number(heartbeatMs, 4).Number(65536, 4).Number(1024, 4).Number(1, 8).Whole());
        }

        internal void Answers(uint name, uint status, byte[] payload) =>
            Hears(new Writer(PacketType.Response).Number(name, 4).Number(status, 1).Number(0, 4).Bytes(payload).Whole());

        internal void HangsUp()
        {
            Rig.Client.Happens(() => Rig.Client.OnClosed(this, "gone", false));
            Rig.Client.Update();
        }
    }

    private sealed class Rig
    {
        internal readonly List<TestLine> Lines = new List<TestLine>();
        internal readonly Client Client;
        internal long Now = 1000;

        internal Rig(int requestsMax = 1024)
        {
            Client = new Client("a:1", new Options
            {
                RequestsMax = requestsMax,
                Draw = () => 0.999,
                Now = () => Now,
                Dial = (_, __) =>
                {
                    Lines.Add(new TestLine(this));
                    return Lines[Lines.Count - 1];
                },
            });
        }

        // The next line, and how long it took.
        internal TestLine Dials(out long took)
        {
            long begun = Now;
            int before = Lines.Count;
            while (Lines.Count == before)
            {
                Client.Update();
                Now += Lines.Count == before ? 10 : 0;
            }
            took = Now - begun;
            return Lines[before];
        }

        internal TestLine Dials()
        {
            long took;
            return Dials(out took);
        }

        internal TestLine Begin()
        {
            Client.Connect();
            TestLine line = Dials();
            line.Greets();
            return line;
        }
    }

    private static void Must(bool holds, string what)
    {
        if (!holds)
        {
            throw new Exception(what);
        }
    }

    private static Status Failed(Task<byte[]> task)
    {
        Must(task.IsFaulted, "it has not failed");
        return ((RingholdException)task.Exception.InnerException).Status;
    }

    private static byte[] Utf8(string text) => Encoding.UTF8.GetBytes(text);

    private static SortedDictionary<int, byte[]> Page(string path)
    {
        var found = new SortedDictionary<int, byte[]>();
        foreach (Match m in Regex.Matches(File.ReadAllText(path), @"^\| (\d+) \|[^|]*\|[^|]*\|[^|]*\| `([0-9a-f ]+)` \|$", RegexOptions.Multiline))
        {
            string digits = m.Groups[2].Value.Replace(" ", "");
            var data = new byte[digits.Length / 2];
            for (int i = 0; i < data.Length; i++)
            {
                data[i] = Convert.ToByte(digits.Substring(2 * i, 2), 16);
            }
            found[int.Parse(m.Groups[1].Value)] = data;
        }
        Must(found.Count >= 12, "the page has examples");
        return found;
    }

    private static void PacketsAreThoseOfThePage(string path)
    {
        SortedDictionary<int, byte[]> page = Page(path);
        var made = new Dictionary<int, byte[]>
        {
            { PacketType.Hello, new Writer(PacketType.Hello).Number(0x5248, 2).Number(1, 1).Number(1, 1).Number(0, 2).Whole() },
            { PacketType.Ping, new Writer(PacketType.Ping).Bytes(Utf8("x")).Whole() },
            { PacketType.Request, Packets.Asking(PacketType.Request, 0x01020304, Utf8("boss"), 0x0506, Flag.Idempotent, 0, Utf8("hit 7")) },
            { PacketType.Notify, Packets.Asking(PacketType.Notify, 9, Utf8("a"), 0, 0, 2000, new byte[0]) },
            { PacketType.Auth, new Writer(PacketType.Auth).Bytes(Utf8("rh1.k1.AA.BB")).Whole() },
            { PacketType.Ack, new Writer(PacketType.Ack).Number(5, 8).Number(8, 4).Whole() },
        };
        foreach (KeyValuePair<int, byte[]> packet in made)
        {
            Must(BitConverter.ToString(packet.Value) == BitConverter.ToString(page[packet.Key]), "type " + packet.Key);
        }
        var stream = new List<byte>();
        foreach (byte[] data in page.Values)
        {
            stream.AddRange(data);
        }
        string all = BitConverter.ToString(stream.ToArray());
        for (int cut = 1; cut <= stream.Count; cut++)
        {
            var packets = new Packets(Packets.BodyMax);
            var found = new List<byte>();
            for (int at = 0; at < stream.Count; at += cut)
            {
                byte type;
                byte[] body;
                byte[] piece = stream.GetRange(at, Math.Min(cut, stream.Count - at)).ToArray();
                packets.Put(piece, piece.Length);
                while (packets.Next(out type, out body))
                {
                    found.AddRange(new Writer(type).Bytes(body).Whole());
                }
            }
            Must(BitConverter.ToString(found.ToArray()) == all, "cut by " + cut);
        }
    }

    private static void AGatewayThatGreetsAndHangsUpIsAsGoodAsNone()
    {
        var rig = new Rig();
        TestLine line = rig.Begin();
        var waits = new List<long>();
        long took;
        for (int i = 0; i < 8; i++)
        {
            line.HangsUp();
            line = rig.Dials(out took);
            waits.Add(took);
            line.Greets();
            Must(rig.Client.IsReady, "it is ready");
        }
        for (int i = 1; i < 6; i++)
        {
            Must(waits[i] > waits[i - 1] * 17 / 10, string.Join(" ", waits));
        }
        Must(waits[7] > 9000 && waits[7] <= 10010, string.Join(" ", waits));
        rig.Now += 10000; // one that lasted ends the row
        line.HangsUp();
        line = rig.Dials(out took);
        Must(took <= 210, "it waits " + took);
        line.Greets();
        line.Hears(PacketType.Goaway, 0xffffffff, 4); // nobody is sent away for longer than an hour, and twice that
        rig.Dials(out took);
        Must(took >= 3600000 && took <= 7200010, "it waits " + took);
    }

    private static void OneThatDoesNotReadGetsNoMorePongs()
    {
        TestLine line = new Rig().Begin();
        int sent = line.Sent.Count;
        line.Hears(new Writer(PacketType.Ping).Bytes(new byte[64]).Whole());
        line.Waits = 1 << 20;
        line.Hears(new Writer(PacketType.Ping).Bytes(new byte[64]).Whole());
        Must(line.Sent.Count == sent + 1, "one pong");
        line.Hears(new Writer(PacketType.Ping).Bytes(new byte[65]).Whole());
        Must(line.Closed, "a ping of 65 bytes makes no sense");
    }

    private static void WhatMayHaveRunIsNotSentAgainByItself()
    {
        var rig = new Rig(2);
        TestLine line = rig.Begin();
        var x = new Actor(0, "x");
        Task<byte[]> plain = rig.Client.Request(x, Utf8("a")), twice = rig.Client.Request(x, Utf8("b"), true);
        Must(Failed(rig.Client.Request(x, null)) == Status.Overloaded, "too many");
        line.HangsUp();
        Must(Failed(plain) == Status.Unknown, "it may have run");
        Task<byte[]> never = rig.Client.Request(x, Utf8("c"));
        line = rig.Dials();
        line.Greets();
        Must(line.Sent.Count == 3, "two go out");
        line.Answers(2, 0, Utf8("B"));
        line.Answers(3, 99, Utf8("later"));
        Must(Encoding.UTF8.GetString(twice.Result) == "B" && Failed(never) == Status.Unknown, "they end");
        Task<byte[]> late = rig.Client.Request(x, null);
        rig.Now += 15000;
        rig.Client.Update();
        Must(Failed(late) == Status.Timeout, "it got no answer");
    }

    private static void ASessionThatIsKeptRunsEachOnce()
    {
        var rig = new Rig();
        var me = new Actor(7, "me");
        byte[] kept = new Writer(0).Bytes(new byte[24]).Number(1, 8).Number(30000, 4).Whole();
        Array.Copy(kept, 4, kept, 0, 36);
        Array.Resize(ref kept, 36);
        var pushes = new List<string>();
        rig.Client.Pushed += (payload, sequence, lost) => pushes.Add(sequence + "-" + lost);
        Task bound = rig.Client.Bind(me);
        TestLine line = rig.Begin();
        Must(line.Sent[1][0] == PacketType.Bind && line.Sent[1][8] == Flag.Keep, "it binds");
        line.Answers(0x7fffffff, 0, kept);
        Must(bound.IsCompleted && !bound.IsFaulted, "it is bound");
        Task<byte[]> asked = rig.Client.Request(me, Utf8("a"));
        line.HangsUp();
        line = rig.Dials();
        line.Greets();
        Must(line.Sent[1][0] == PacketType.Resume, "it resumes");
        line.Answers(0x7fffffff, 0, kept);
        Must(line.Sent[2][8] == Flag.Again, "it asks again");
        foreach (ulong sequence in new ulong[] { 1, 1, 3 })
        {
            line.Hears(PacketType.Push, sequence, 8, "hi");
        }
        Must(string.Join(" ", pushes) == "1-0 3-1", string.Join(" ", pushes));
        line.Answers(1, 0, Utf8("A"));
        Must(Encoding.UTF8.GetString(asked.Result) == "A", "it has an answer");
        rig.Now += 500;
        rig.Client.Update();
        Must(line.Sent[3][0] == PacketType.Ack && line.Sent[3][11] == 3 && line.Sent[3][15] == 2, "it acknowledges");
        line.Hears(PacketType.Kick, 1000, 4, "bye");
        Must(rig.Client.Request(me, null).Exception.InnerException is KickedException, "it is over");
    }

    private static void AHandlerThatThrowsEndsNothing()
    {
        var rig = new Rig();
        rig.Client.Ready += () => { throw new ArithmeticException(); };
        rig.Client.Connect();
        TestLine line = rig.Dials();
        try
        {
            line.Greets();
            Must(false, "it throws");
        }
        catch (ArithmeticException)
        {
        }
        Task<byte[]> asked = rig.Client.Request(new Actor(0, "x"), null);
        line.Answers(1, 0, Utf8("still here"));
        Must(Encoding.UTF8.GetString(asked.Result) == "still here", "it goes on");
        Task gone = rig.Client.Request(new Actor(0, "x"), null).ContinueWith(_ => rig.Client.Dispose(), TaskContinuationOptions.ExecuteSynchronously);
        line.HangsUp(); // who is told of it disposes of the client
        rig.Now += 100000;
        rig.Client.Update();
        Must(gone.IsCompleted && rig.Lines.Count == 1, "it stays disposed of");
    }

    private static void AnEntityWhoseIdIsNoTextIsBoundAsItIs()
    {
        var rig = new Rig();
        rig.Client.Bind(new Actor(7, "me"));
        TestLine line = rig.Begin();
        line.Answers(0x7fffffff, 0, new byte[0]);
        var id = new byte[100];
        for (int i = 0; i < id.Length; i++)
        {
            id[i] = 0xff;
        }
        line.Hears(new Writer(PacketType.Rebound).Number(0, 8).Number(8, 2).Number((ulong)id.Length, 1).Bytes(id).Whole());
        byte[] bind = Packets.Asking(PacketType.Bind, 0x7fffffff, id, 8, Flag.Keep, 0, new byte[0]);
        Must(BitConverter.ToString(line.Sent[2]) == BitConverter.ToString(bind), "it binds itself");
    }

    private static void AFloodHoldsUpNoFrame()
    {
        var rig = new Rig();
        int pieces = 0;
        Action piece = null;
        piece = () =>
        {
            Must(++pieces < 10000, "it never ends");
            rig.Client.Happens(piece);
        };
        rig.Client.Happens(piece);
        rig.Client.Update();
        int before = pieces;
        rig.Client.Update(TimeSpan.FromHours(1)); // what is left isn't waited for
        Must(before > 0 && pieces > before, "it goes on");
    }

    private static void AHeartbeatOfNoGatewayIsASecond()
    {
        var rig = new Rig();
        rig.Client.Connect();
        TestLine line = rig.Dials();
        line.Greets(1);
        rig.Now += 999;
        rig.Client.Update();
        Must(line.Sent.Count == 1 && !line.Closed, "it waits");
        rig.Now += 501;
        rig.Client.Update();
        Must(line.Sent.Count == 2 && line.Sent[1][0] == PacketType.Ping && !line.Closed, "it asks");
    }

    private static void NamesEndBeforeThoseOfTheSession()
    {
        var rig = new Rig();
        TestLine line = rig.Begin();
        var x = new Actor(0, "x");
        typeof(Client).GetField("lastName", BindingFlags.Instance | BindingFlags.NonPublic).SetValue(rig.Client, 0x7ffffeffu);
        Task<byte[]> last = rig.Client.Request(x, null);
        line.Answers(0x7fffff00, 0, Utf8("last"));
        Must(Encoding.UTF8.GetString(last.Result) == "last", "it is a name");
        Must(Failed(rig.Client.Request(x, null)) == Status.Overloaded, "there is no more");
        rig.Client.Dispose();
        line = rig.Begin();
        rig.Client.Notify(x, null);
        Must(line.Sent[1][7] == 1, "they begin anew");
    }

    private static void WhatIsWrongIsRefusedAtOnce()
    {
        foreach (string gateways in new[] { null, "", "a", "a:x", "http://a:1", "a:1,", "tcp://" })
        {
            try
            {
                new Client(gateways).Dispose();
                Must(false, gateways + " is taken");
            }
            catch (ArgumentException)
            {
            }
        }
        var rig = new Rig();
        rig.Begin();
        foreach (string id in new[] { null, "", new string('x', 256) })
        {
            try
            {
                rig.Client.Notify(new Actor(0, id), null);
                Must(false, "it is taken");
            }
            catch (ArgumentException)
            {
            }
        }
        Must(Failed(rig.Client.Request(new Actor(0, "x"), new byte[65536])) == Status.BadRequest, "it is too large");
    }

    private static int Main(string[] arguments)
    {
        var all = new Dictionary<string, Action>
        {
            { "packets_are_those_of_the_page", () => PacketsAreThoseOfThePage(arguments[0]) },
            { "a_gateway_that_greets_and_hangs_up_is_as_good_as_none", AGatewayThatGreetsAndHangsUpIsAsGoodAsNone },
            { "one_that_does_not_read_gets_no_more_pongs", OneThatDoesNotReadGetsNoMorePongs },
            { "what_may_have_run_is_not_sent_again_by_itself", WhatMayHaveRunIsNotSentAgainByItself },
            { "a_session_that_is_kept_runs_each_once", ASessionThatIsKeptRunsEachOnce },
            { "a_handler_that_throws_ends_nothing", AHandlerThatThrowsEndsNothing },
            { "an_entity_whose_id_is_no_text_is_bound_as_it_is", AnEntityWhoseIdIsNoTextIsBoundAsItIs },
            { "a_flood_holds_up_no_frame", AFloodHoldsUpNoFrame },
            { "a_heartbeat_of_no_gateway_is_a_second", AHeartbeatOfNoGatewayIsASecond },
            { "names_end_before_those_of_the_session", NamesEndBeforeThoseOfTheSession },
            { "what_is_wrong_is_refused_at_once", WhatIsWrongIsRefusedAtOnce },
        };
        int failed = 0;
        foreach (KeyValuePair<string, Action> test in all)
        {
            try
            {
                test.Value();
                Console.WriteLine("ok - " + test.Key);
            }
            catch (Exception e)
            {
                failed++;
                Console.WriteLine("not ok - " + test.Key + "\n# " + e);
            }
        }
        return failed == 0 ? 0 : 1;
    }
}
