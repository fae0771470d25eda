/** The program as deploy/weir.service runs it: without rights but those of the unit. */
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Netns } from "./netns.ts";

const root = join(dirname(fileURLToPath(import.meta.url)), "..", "..");
const unit = readFileSync(join(root, "deploy", "weir.service"), "utf8");

/** udev lets everybody open it; where only root may, it has to be root, without root's other rights. */
const USER = (statSync("/dev/net/tun", { throwIfNoEntry: false })?.mode ?? 0) & 0o2 ? 65_534 : 0;

/** To be put before a command; needs `setpriv`. */
export function asService(router: Netns): readonly string[] {
  const capabilities = unitSetting("AmbientCapabilities").toLowerCase().split(" ");
  const set = `-all,${capabilities.map((name) => `+${name.replace("cap_", "")}`).join()}`;
  const user = [`--reuid=${USER}`, `--regid=${USER}`, "--clear-groups", "--no-new-privs"];
  const rights = [`--inh-caps=${set}`, `--ambient-caps=${set}`, `--bounding-set=${set}`];
  return [...router.prefix, "setpriv", ...user, ...rights];
}

/** What systemd runs after the program's end, with the paths of a test: a failure of it is ignored (`-`). */
export function afterStop(home: string): readonly string[] {
  const [program = "", ...args] = unitSetting("ExecStopPost").split(" ");
  if (program !== "-/opt/weir/weir") throw new Error(`ExecStopPost=${program}: expected -/opt/weir/weir`);
  const paths: Readonly<Record<string, string>> = {
    "/var/lib/weir": home,
    "/etc/weir/config.yaml": join(home, "config.yaml"),
  };
  return [join(root, "bin", "weir"), ...args.map((arg) => paths[arg] ?? arg)];
}

function unitSetting(name: string): string {
  const value = new RegExp(`^${name}=(.*)$`, "m").exec(unit)?.[1];
  if (value === undefined) throw new Error(`deploy/weir.service has no ${name}`);
  return value;
}
