/** Runs in a namespace: a TUN whose device is deleted, with a capture that only says what it is told. */
import { execFileSync } from "node:child_process";
import type { Capture, CaptureOptions, CapturePlan, Prefix } from "#core/capture.ts";
import { Tun, type TunEnv } from "#tun/tun.ts";
import { BARE_ENV, bareSettings } from "./bare-tun.ts";

const [device = "tun0", scenario = ""] = process.argv.slice(2);
const say = (what: string, { length = 0 } = {}): void => console.log(`${what} ${length}`);
const capture: Capture = {
  directSet: null,
  updateSets: async ({ route }) => say("updated", route),
  async steer() {},
  async confirm() {},
  async leave() {},
  async [Symbol.asyncDispose]() {},
};

function open(env: Partial<TunEnv>): Promise<Tun> {
  const options = { autoRoute: true, autoRedirect: false } as CaptureOptions;
  const settings = bareSettings(device, { capture: options, routeSets: ["around"] });
  return Tun.open(settings, { ...BARE_ENV, ...env });
}

/** While the second capture is being opened the rule provider changes. */
async function changedSets(): Promise<void> {
  let provided: readonly Prefix[] = [];
  let opened = 0;
  const openCapture = async ({ routeSet }: CapturePlan): Promise<Capture> => {
    say("opened", routeSet ?? []);
    if (++opened > 1) {
      provided = [{ bytes: Uint8Array.of(192, 0, 2, 0), bits: 24 }];
      await tun.updateSets();
    }
    return capture;
  };
  const tun: Tun = await open({ prefixesOf: () => provided, openCapture });
  tun.activate();
}

/** Another program deletes the device while the TUN is being closed. */
async function closing(): Promise<void> {
  const held: string[] = [];
  const hold = async (): Promise<AsyncDisposable> => {
    held.push("held");
    return { async [Symbol.asyncDispose]() {} };
  };
  const dispose = async (): Promise<void> => {
    execFileSync("ip", ["link", "del", device]);
    for (let turn = 0; turn < 100; turn++) await new Promise(setImmediate);
  };
  const tun = await open({ hold, openCapture: async () => ({ ...capture, [Symbol.asyncDispose]: dispose }) });
  tun.activate();
  await tun[Symbol.asyncDispose]();
  say("closed, holding", held);
}

await (scenario === "sets" ? changedSets() : closing());
