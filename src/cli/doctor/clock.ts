/** The clock: against the time of the installation, and against a time server where one is named. */
import { lookup } from "node:dns/promises";
import { statSync } from "node:fs";
import type { Config } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import { ipOf } from "#net/address/ip.ts";
import { askOffset } from "#net/clock/ntp.ts";
import { ConnectedFlow } from "#net/udp/connected-flow.ts";
import { bad, fine, type Finding } from "./finding.ts";

const TIMEOUT_MS = 2_000;
const NTP_PORT = 123;
/** Shadowsocks 2022 refuses a peer whose clock differs by more (SIP022 §3.1.3), the strictest of the protocols. */
const MOST_SKEW_MS = 30_000;
const DAY_MS = 86_400_000;

/** `server`: host or host:port; null: the one of the section `ntp`, if that is on. */
export async function clockFinding(server: string | null, config: Config | null): Promise<Finding> {
  const early = beforeInstallation();
  if (early !== null) return early;
  const place = server === null ? configured(config) : placeOf(server);
  if (place === null) return fine("clock", `${now()}; no time server was asked (-ntp names one)`);
  const { host, port } = place;
  try {
    const ahead = await offsetOf(host, port);
    const found = `${now()}, ${(Math.abs(ahead) / 1000).toFixed(1)} s ${ahead > 0 ? "behind" : "ahead of"} ${host}`;
    if (Math.abs(ahead) <= MOST_SKEW_MS) return fine("clock", found);
    return bad("error", "clock", found, [
      "certificates seem expired or not valid yet, and VMess and Shadowsocks 2022 refuse",
      "set the clock, and run an NTP client; the section ntp corrects what weir itself sends",
    ]);
  } catch (error) {
    return bad("warning", "clock", `${now()}; ${host} port ${port}: ${messageOf(error)}`, [
      "whether the clock is right is not known",
      "name a time server that can be reached, by -ntp or in the section ntp",
    ]);
  }
}

const now = (): string => new Date().toISOString();

/** A clock that was never set mostly says a time from before the program was installed. */
function beforeInstallation(): Finding | null {
  const builtMs = statSync(import.meta.filename).mtimeMs;
  if (Date.now() >= builtMs - DAY_MS) return null;
  return bad("error", "clock", now(), [
    `it is before ${new Date(builtMs).toISOString()}, when this program was installed: certificates and VMess will fail`,
    "set the clock, and run an NTP client",
  ]);
}

interface Place {
  readonly host: string;
  readonly port: number;
}

function configured(config: Config | null): Place | null {
  return config?.ntp.enable === true ? { host: config.ntp.server, port: config.ntp.port } : null;
}

function placeOf(text: string): Place {
  const [, six, other, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d+))?$/.exec(text) ?? [];
  return { host: six ?? other ?? text, port: Number(port ?? NTP_PORT) };
}

async function offsetOf(host: string, port: number): Promise<number> {
  const ip = ipOf((await lookup(host)).address);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  await using flow = await ConnectedFlow.open({ ip, port }, null);
  return await askOffset(flow, { host: null, ip, port }, signal);
}
