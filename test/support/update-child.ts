/** A process that makes an update, to be killed: URL KEY FOLDER VERSION. */
import { openDirectDialer } from "#net/dial/direct-dialer.ts";
import { SYSTEM_RESOLVER } from "#net/dial/system-resolver.ts";
import { DEFAULT_TRUST } from "#net/dial/trust.ts";
import { findInstallation } from "#update/installation.ts";
import { openReleaseSource } from "#update/settings.ts";
import { lookForUpdate, update } from "#update/update.ts";

const [url = "", publicKey = "", folder = "", version = ""] = process.argv.slice(2);
const way = {
  dialer: openDirectDialer({ resolver: SYSTEM_RESOLVER }),
  trust: DEFAULT_TRUST,
  userAgent: "weir/test",
};
const source = await openReleaseSource({ url, publicKey }, { readPem: async (text) => text }, way);
const { signal } = new AbortController();
const env = {
  source,
  installation: findInstallation(folder, version),
  checkArgs: null,
  takeOver: null,
  say() {},
};
await update(await lookForUpdate(source, version, signal), env, signal);
