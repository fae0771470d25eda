/** `npm run bench`: all benchmarks, or those whose name holds one of the arguments. Ratios count; absolute figures are this machine's. */
import { cpus } from "node:os";
import * as config from "./config.ts";
import * as cores from "./cores.ts";
import * as controller from "./controller.ts";
import * as dashboard from "./dashboard.ts";
import * as dns from "./dns.ts";
import * as kernelDirect from "./kernel-direct.ts";
import * as lists from "./lists.ts";
import * as governance from "./governance.ts";
import * as match from "./match.ts";
import * as protocols from "./protocols.ts";
import * as quic from "./quic.ts";
import * as quicFlood from "./quic-flood.ts";
import * as quicIdle from "./quic-idle.ts";
import * as quicUdp from "./quic-udp.ts";
import * as reality from "./reality.ts";
import * as relay from "./relay.ts";
import * as tls from "./tls.ts";
import * as tlsDial from "./tls-dial.ts";
import * as transparent from "./transparent.ts";
import * as udp from "./udp.ts";
import * as users from "./users.ts";

interface Benchmark {
  readonly NAME: string;
  run(out: (line: string) => void): Promise<void>;
}

const BENCHMARKS: readonly Benchmark[] = [
  config,
  match,
  lists,
  dns,
  relay,
  cores,
  udp,
  protocols,
  quic,
  quicFlood,
  quicIdle,
  quicUdp,
  tls,
  tlsDial,
  reality,
  governance,
  controller,
  dashboard,
  users,
  transparent,
  kernelDirect,
];

const wanted = process.argv.slice(2);
console.log(`node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? "unknown processor"}`);
for (const { NAME, run } of BENCHMARKS) {
  if (wanted.length > 0 && !wanted.some((part) => NAME.includes(part))) continue;
  console.log(`\n## ${NAME}`);
  await run((line) => console.log(line));
}
