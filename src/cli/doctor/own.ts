/** What the configuration needs of this machine: ports, certificates, stores. */
import { X509Certificate } from "node:crypto";
import { createServer, isIP } from "node:net";
import { once } from "node:events";
import { readCertificate } from "#acme/our-files.ts";
import { namesOf } from "#app/certificates.ts";
import type { Config } from "#config/config.ts";
import { messageOf } from "#core/errors.ts";
import type { SafeFiles } from "#core/files.ts";
import { checkAccess } from "#store/file-safety.ts";
import { bad, fine, type Finding } from "./finding.ts";

/** `isRunning`: a weir with this configuration has its ports. */
export async function ownFindings(
  config: Config,
  files: SafeFiles,
  isRunning: boolean,
): Promise<readonly Finding[]> {
  return [
    ...(isRunning
      ? [fine("ports", "a weir runs with this configuration and has them")]
      : await ports(config)),
    ...(await certificates(config, files)),
    ...stores(config, files),
  ];
}

interface Place {
  readonly owner: string;
  readonly host: string;
  readonly port: number;
}

async function ports(config: Config): Promise<readonly Finding[]> {
  const places = placesOf(config);
  const found = (await Promise.all(places.map(portFinding))).filter((finding) => finding !== null);
  return found.length > 0 ? found : [fine("ports", `${places.length} can be listened on`)];
}

function placesOf({ listeners, controller: { externalController: at } }: Config): readonly Place[] {
  const colon = at.lastIndexOf(":");
  const host = at.slice(0, Math.max(0, colon)).replace(/^\[(.*)\]$/, "$1");
  const controller = { owner: "external-controller", host: host || "::", port: Number(at.slice(colon + 1)) };
  const all = listeners.flatMap(({ name, hosts, ports: numbers }) =>
    hosts.flatMap((each) => numbers.map((port) => ({ owner: `listener ${name}`, host: each, port }))),
  );
  return [...all, ...(at === "" ? [] : [controller])].filter(({ port }) => port > 0);
}

/** By TCP; null: it can be listened on. */
async function portFinding({ owner, host, port }: Place): Promise<Finding | null> {
  const server = createServer();
  try {
    const listening = once(server, "listening"); // rejects at an error
    server.listen({ host, port, exclusive: true });
    await listening;
    return null;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : messageOf(error);
    return bad("error", "ports", `${owner}: ${host} port ${port}: ${code}`, wordsOf(code));
  } finally {
    server.close();
  }
}

function wordsOf(code: string): readonly [meaning: string, advice: string] {
  if (code === "EADDRINUSE")
    return ["another program has the port", "ss -ltnp shows which; end it, or choose another port"];
  if (code === "EADDRNOTAVAIL")
    return ["this machine does not have the address", "ip address shows what it has"];
  if (code === "EACCES")
    return ["the user may not listen there", "CAP_NET_BIND_SERVICE, or a port from 1024 on"];
  return ["it cannot be listened on", "see the error"];
}

const SOON_MS = 14 * 86_400_000;

async function certificates(config: Config, files: SafeFiles): Promise<readonly Finding[]> {
  const { listeners, tls, svc } = config;
  const named = svc === null || svc.publicBaseUrl === "" ? null : new URL(svc.publicBaseUrl).hostname;
  const managed = new Set(svc?.managedListeners);
  const found: Finding[] = [];
  const look = async (owner: string, textOrPath: string, name: string | null, isFetched: boolean) => {
    if (textOrPath === "") return;
    const missing = isFetched ? await notYetIssued(owner, files.resolve(textOrPath)) : null;
    found.push(missing ?? (await certificate(owner, textOrPath, name, files)));
  };
  await look("Controller", tls.certificate, null, tls.acme.length > 0);
  for (const { name, options } of listeners)
    if ("certificate" in options && typeof options.certificate === "string")
      await look(
        `listener ${name}`,
        options.certificate,
        managed.has(name) ? named : null,
        namesOf(options).length > 0,
      );
  return found;
}

/** What there is to say of a certificate by ACME before the first one has come; null: it has. */
async function notYetIssued(owner: string, file: string): Promise<Finding | null> {
  const what = `certificate of ${owner}`;
  try {
    const kept = await readCertificate(file);
    if (kept === null) return fine(what, "it is ordered by ACME when weir runs");
    if (!kept.standsIn) return null;
  } catch (error) {
    return bad("error", what, messageOf(error), [
      "none is ordered",
      "another acme.folder, or move that file",
    ]);
  }
  return bad("warning", what, "none has been issued by ACME yet; one signed by itself stands in", [
    "clients that check certificates refuse the connection",
    "the lines of the log that begin with acme say why",
  ]);
}

/** `name`: what clients will ask for; null: that is not known. */
async function certificate(
  owner: string,
  textOrPath: string,
  name: string | null,
  files: SafeFiles,
): Promise<Finding> {
  const what = `certificate of ${owner}`;
  const refused = "clients that check it refuse the connection";
  let read: X509Certificate;
  try {
    read = new X509Certificate(await files.readPem(textOrPath));
  } catch (error) {
    return bad("error", what, messageOf(error), [
      "the listener cannot be opened",
      "a PEM certificate in its place",
    ]);
  }
  const ends = read.validToDate;
  const found = `valid until ${ends.toISOString().slice(0, 10)}`;
  if (ends.getTime() < Date.now()) return bad("error", what, `expired: ${found}`, [refused, "renew it"]);
  if (read.validFromDate.getTime() > Date.now())
    return bad("error", what, `not valid before ${read.validFromDate.toISOString()}`, [
      refused,
      "check the clock",
    ]);
  if (name !== null && !isFor(read, name))
    return bad("warning", what, `it is not for ${name} (${read.subjectAltName ?? read.subject})`, [
      `clients of subscription links ask for ${name}; those that check it refuse`,
      "a certificate with that name, or another public-base-url",
    ]);
  if (ends.getTime() - Date.now() < SOON_MS) return bad("warning", what, found, ["it ends soon", "renew it"]);
  return fine(what, found);
}

function isFor(certificate: X509Certificate, name: string): boolean {
  const address = name.replace(/^\[(.*)\]$/, "$1");
  return (isIP(address) === 0 ? certificate.checkHost(name) : certificate.checkIP(address)) !== undefined;
}

function stores({ svc, trafficControl }: Config, files: SafeFiles): readonly Finding[] {
  const named = { "svc.store": svc?.store, "traffic-control.store": trafficControl?.store };
  return Object.entries(named).flatMap(([key, store]) => {
    if (store === undefined) return [];
    try {
      checkAccess(files.resolve(store));
      return [fine("store", `${key}: ${store} is for this user alone`)];
    } catch (error) {
      return [
        bad("error", "store", `${key}: ${messageOf(error)}`, [
          "a start leaves the store closed",
          "correct owner and mode as it says",
        ]),
      ];
    }
  });
}
