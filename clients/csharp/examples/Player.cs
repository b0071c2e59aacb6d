// SPDX-License-Identifier: Apache-2.0

using System;
using System.Collections.Concurrent;
using System.IO;
using System.Security.Cryptography.X509Certificates;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Ringhold;

/// <summary>
/// examples/player.c in C#: what is typed goes to an actor, what it pushes is shown.
///
///     Player.exe GATEWAY,GATEWAY KIND ID [TOKEN]
///
/// PLAYER_CA: the certificate (PEM) that a tls:// gateway must have.
/// </summary>
internal static class Player
{
    private static readonly ConcurrentQueue<string> Typed = new ConcurrentQueue<string>();
    private static int waiting;
    private static volatile bool ended;
    private static bool kicked;
    private static Actor actor;

    private static void Say(string line)
    {
        Console.Out.Write(line + "\n");
        Console.Out.Flush();
    }

    private static string Text(byte[] payload) => Encoding.UTF8.GetString(payload);

    private static string Name(Status status)
    {
        var name = new StringBuilder();
        foreach (char c in status.ToString())
        {
            name.Append(char.IsUpper(c) && name.Length > 0 ? "_" : "").Append(char.ToUpperInvariant(c));
        }
        return name.ToString();
    }

    private static async Task Ask(Client client, string line)
    {
        waiting++;
        try
        {
            Say("answer OK  " + Text(await client.Request(actor, Encoding.UTF8.GetBytes(line))));
        }
        catch (RingholdException e)
        {
            Say("answer " + Name(e.Status) + "  " + Text(e.Payload));
        }
        catch (KickedException)
        {
        }
        waiting--;
    }

    private static async Task Bind(Client client)
    {
        try
        {
            await client.Bind(actor);
        }
        catch (RingholdException e)
        {
            Say("refused " + Text(e.Payload));
        }
        catch (KickedException)
        {
        }
    }

    private static Options MakeOptions(string[] arguments)
    {
        var options = new Options();
        string ca = Environment.GetEnvironmentVariable("PLAYER_CA");
        if (arguments.Length > 3)
        {
            options.Token = Encoding.UTF8.GetBytes(arguments[3]);
        }
        if (ca != null)
        {
            byte[] only = new X509Certificate2(ca).GetRawCertData();
            options.CheckCertificate = (_, got, __, ___) => Convert.ToBase64String(got.GetRawCertData()) == Convert.ToBase64String(only);
        }
        return options;
    }

    private static void Main(string[] arguments)
    {
        actor = new Actor(ushort.Parse(arguments[1]), arguments[2]);
        var client = new Client(arguments[0], MakeOptions(arguments));
        client.Known += (who, _) => Say("known " + who.Kind + "  " + who.Id);
        client.Rebound += (who, _) =>
        {
            Say("rebound " + who.Kind + "  " + who.Id);
            actor = who; // what is typed goes to that one from here on
        };
        client.Ready += () => Say("ready");
        client.Bound += fresh => Say("bound " + (fresh ? "afresh" : "again"));
        client.Pushed += (payload, sequence, lost) => Say("push " + sequence + " lost " + lost + "  " + Text(payload));
        client.Goaway += (_, text) => Say("goaway " + text);
        client.Lost += why => Say("lost " + why);
        client.Begun += () => Say("begun");
        client.Refused += e => Say("refused " + Text(e.Payload));
        client.Kicked += e =>
        {
            Say("kicked " + e.Code + "  " + e.Message);
            kicked = true;
        };
        var reader = new Thread(Read) { IsBackground = true };
        reader.Start();
        Begun(Bind(client));
        Begun(client.Connect());
        while (!kicked && !(ended && Typed.IsEmpty && waiting == 0))
        {
            string line;
            while (Typed.TryDequeue(out line))
            {
                if (line.StartsWith("!", StringComparison.Ordinal))
                {
                    client.Notify(actor, Encoding.UTF8.GetBytes(line.Substring(1)));
                }
                else
                {
                    Begun(Ask(client, line));
                }
            }
            client.Update(TimeSpan.FromMilliseconds(10)); // a game's frame
        }
        client.Dispose();
    }

    // It goes on by itself, and tells what became of it.
    private static void Begun(Task task)
    {
    }

    private static void Read()
    {
        using (var lines = new StreamReader(Console.OpenStandardInput()))
        {
            string line;
            while ((line = lines.ReadLine()) != null)
            {
                Typed.Enqueue(line);
            }
        }
        ended = true;
    }
}
