// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Generic;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Ringhold;

/// <summary>
/// Many players of examples/bots.c, an actor that answers with how many requests it has run and pushes numbers that grow by one. Each
/// keeps a ledger of what it was told; one thread plays them all.
///
///     Bots.exe -gateways=127.0.0.1:7300,127.0.0.1:7301 -n=500 -rate=100 -ask=2s -time=2m
///
/// It ends after -time; 0s: when its stdin ends. The last line is the sum of all ledgers, as JSON. Exit code 2: something was lost
/// or came twice.
/// </summary>
internal sealed class Bot
{
    internal readonly Client Client;
    internal ulong Ok, Unknown, Refused, Pushes, Lost, Duplicated, PushesLost, PushesTwice, Begun, Lines;
    internal double Next;
    internal bool Waits;
    private readonly Actor me;
    private ulong ran, unsure, pushed; // as the last answer said; requests since then that may have run; the last number

    internal Bot(string gateways, string id)
    {
        me = new Actor(0, id);
        Client = new Client(gateways);
        Client.Pushed += (payload, _, __) => OnPush(payload);
        Client.Begun += () =>
        {
            Begun++;
            ran = unsure = pushed = 0;
        };
        Client.Lost += _ => Lines++;
        Client.Bind(me);
        Client.Connect();
    }

    private void OnPush(byte[] payload)
    {
        ulong number;
        Pushes++;
        if (!ulong.TryParse(Encoding.UTF8.GetString(payload), out number) || (pushed > 0 && number <= pushed))
        {
            PushesTwice++;
        }
        else if (pushed > 0)
        {
            PushesLost += number - pushed - 1;
        }
        pushed = number;
    }

    internal async Task Ask()
    {
        Waits = true;
        try
        {
            ulong count = ulong.Parse(Encoding.UTF8.GetString(await Client.Request(me, new byte[] { 1 })));
            Ok++;
            Lost += count < ran + 1 ? ran + 1 - count : 0;
            Duplicated += count > ran + 1 + unsure ? count - ran - 1 - unsure : 0;
            ran = count;
            unsure = 0;
        }
        catch (RingholdException e)
        {
            if (e.MayHaveRun)
            {
                Unknown++;
                unsure++;
            }
            else
            {
                Refused++;
            }
        }
        catch (KickedException)
        {
        }
        Waits = false;
    }
}

internal static class Bots
{
    private static volatile bool over;

    private static double Seconds(string text)
    {
        return text.EndsWith("m", StringComparison.Ordinal) ? 60 * double.Parse(text.TrimEnd('m')) : double.Parse(text.TrimEnd('s'));
    }

    private static int Main(string[] arguments)
    {
        var options = new Dictionary<string, string>
        {
            { "gateways", "127.0.0.1:7300" }, { "n", "100" }, { "rate", "100" }, { "ask", "2s" }, { "time", "10s" }, { "prefix", "cs-" },
        };
        foreach (string argument in arguments)
        {
            string[] two = argument.TrimStart('-').Split(new[] { '=' }, 2);
            if (two.Length != 2 || !options.ContainsKey(two[0]))
            {
                Console.Error.WriteLine("Bots.exe [-" + string.Join("=VALUE] [-", options.Keys) + "=VALUE]");
                return 1;
            }
            options[two[0]] = two[1];
        }
        int n = int.Parse(options["n"]);
        double rate = double.Parse(options["rate"]), ask = Seconds(options["ask"]), length = Seconds(options["time"]);
        if (length == 0)
        {
            length = double.MaxValue;
            new Thread(() =>
            {
                Console.In.ReadToEnd();
                over = true;
            }) { IsBackground = true }.Start();
        }
        var bots = new List<Bot>();
        var random = new Random();
        var clock = System.Diagnostics.Stopwatch.StartNew();
        while (!over && clock.Elapsed.TotalSeconds < length)
        {
            double now = clock.Elapsed.TotalSeconds;
            while (bots.Count < n && bots.Count < rate * now)
            {
                bots.Add(new Bot(options["gateways"], options["prefix"] + bots.Count) { Next = now + random.NextDouble() * ask });
            }
            foreach (Bot bot in bots)
            {
                if (bot.Next <= now && !bot.Waits && bot.Client.IsReady)
                {
                    bot.Next = now + ask;
                    bot.Ask();
                }
                bot.Client.Update();
            }
            Thread.Sleep(10); // a frame
        }
        return Tell(bots);
    }

    private static int Tell(List<Bot> bots)
    {
        ulong ok = 0, unknown = 0, refused = 0, pushes = 0, lost = 0, duplicated = 0, pushesLost = 0, pushesTwice = 0, begun = 0, lines = 0;
        bool silent = false;
        foreach (Bot bot in bots)
        {
            ok += bot.Ok;
            unknown += bot.Unknown;
            refused += bot.Refused;
            pushes += bot.Pushes;
            lost += bot.Lost;
            duplicated += bot.Duplicated;
            pushesLost += bot.PushesLost;
            pushesTwice += bot.PushesTwice;
            begun += bot.Begun;
            lines += bot.Lines;
            silent = silent || bot.Ok == 0;
            bot.Client.Dispose();
        }
        Console.WriteLine(
            "{{\"bots\":{0},\"ok\":{1},\"unknown\":{2},\"refused\":{3},\"pushes\":{4},\"lost\":{5},\"duplicated\":{6},\"pushes_lost\":{7},"
            + "\"pushes_duplicated\":{8},\"begun_afresh\":{9},\"lines_lost\":{10}}}",
            bots.Count, ok, unknown, refused, pushes, lost, duplicated, pushesLost, pushesTwice, begun, lines);
        return silent || lost + duplicated + pushesLost + pushesTwice > 0 ? 2 : 0;
    }
}
