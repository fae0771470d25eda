/** The engine behind a UDP socket, in a process of its own: prints its port, ends with its standard input. */
import { listen, openScripted, always, HOST, openTestDns, server } from "../test/integration/dns-kit.ts";

const mode = process.argv[2] === "fake-ip" ? "fake-ip" : "redir-host";
const upstream = await openScripted(always("192.0.2.1", 3600));
const dns = await openTestDns({ nameserver: [server(`${HOST}:${upstream.port}`)], enhancedMode: mode });
const front = await listen(dns.handle);
process.stdout.write(`${front.port}\n`);
process.stdin.resume();
process.stdin.on("end", () => process.exit());
