/** Pebble, the test server of Let's Encrypt: a real ACME authority on loopback, whose every name leads to 127.0.0.1. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { makeCertificate } from "./certificate.ts";
import { freePorts } from "./free-ports.ts";
import { missing, startPeer } from "./peer.ts";

/** Why there can be none here; false: there can. */
export const noPebble = missing("pebble", "pebble-challtestsrv");

export interface Pebble extends AsyncDisposable {
  readonly directory: string;
  /** Of the authority that the directory's own certificate is of: `acme.ca`. */
  readonly ca: string;
  /** Where HTTP-01 and TLS-ALPN-01 are validated. */
  readonly httpPort: number;
  readonly tlsPort: number;
  output(): string;
  /** How many orders and accounts it has made. */
  orders(): number;
  accounts(): number;
  /** How often it was asked for an order: what it refuses counts, and what came with a nonce that it does not take. */
  requests(): number;
  /** The root of what it issues. */
  root(): Promise<string>;
}

export interface PebbleOptions {
  readonly validForSeconds?: number;
  /** Names that it refuses. */
  readonly blocked?: readonly string[];
}

export async function startPebble({
  validForSeconds = 7_776_000,
  blocked = [],
}: PebbleOptions = {}): Promise<Pebble> {
  await using undo = new AsyncDisposableStack();
  const [port = 0, managementPort = 0, httpPort = 0, tlsPort = 0, dnsPort = 0] = await freePorts(5);
  const folder = mkdtempSync(join(tmpdir(), "weir-pebble-"));
  undo.defer(() => rmSync(folder, { recursive: true, force: true }));
  const authority = makeCertificate({ names: ["Directory Authority"], ca: true });
  const own = makeCertificate({ names: ["127.0.0.1"], issuer: authority });
  const keep = (name: string, content: string): string => {
    writeFileSync(join(folder, name), content);
    return join(folder, name);
  };
  const config = {
    listenAddress: `127.0.0.1:${port}`,
    managementListenAddress: `127.0.0.1:${managementPort}`,
    certificate: keep("own.pem", own.cert),
    privateKey: keep("own.key", own.key),
    httpPort,
    tlsPort,
    domainBlocklist: blocked,
    certificateValidityPeriod: validForSeconds, // of older versions; newer ones have profiles
    profiles: { default: { description: "the only one", validityPeriod: validForSeconds } },
  };
  const unused = ["defaultIPv6", "http01", "https01", "tlsalpn01", "management"];
  const dns = [`-dns01=127.0.0.1:${dnsPort}`, "-defaultIPv4=127.0.0.1", ...unused.map((one) => `-${one}=`)];
  undo.use(await startPeer(["pebble-challtestsrv", ...dns], dnsPort, "udp"));
  const settings = ["PEBBLE_VA_NOSLEEP=1", "PEBBLE_AUTHZREUSE=0", "PEBBLE_WFE_NONCEREJECT=20"];
  const file = keep("config.json", JSON.stringify({ pebble: config }));
  const command = ["env", ...settings, "pebble", "-config", file, "-dnsserver", `127.0.0.1:${dnsPort}`];
  const peer = undo.use(await startPeer(command, port));
  const owned = undo.move();
  const counted = (text: string): number => peer.output().split(text).length - 1;
  return {
    directory: `https://127.0.0.1:${port}/dir`,
    ca: authority.cert,
    httpPort,
    tlsPort,
    output: () => peer.output(),
    orders: () => counted("Added order"),
    accounts: () => counted("accounts in memory"),
    requests: () => counted("POST /order-plz"),
    root: () => get(`https://127.0.0.1:${managementPort}/roots/0`, authority.cert),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function get(url: string, ca: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { ca, agent: false }, (response) => void text(response).then(resolve, reject));
    sent.on("error", reject).end();
  });
}
