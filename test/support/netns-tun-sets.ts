/**
 * Runs in a namespace: a TUN with a route set, and a capture that only says what it is told. While the second capture is being
 * opened the rule provider changes.
 */
import type { Capture, CaptureOptions, Prefix } from "#core/capture.ts";
import { Tun } from "#tun/tun.ts";
import { BARE_ENV, bareSettings } from "./bare-tun.ts";

const [device = "tun0"] = process.argv.slice(2);
let provided: readonly Prefix[] = [];
let opened = 0;
const say = (what: string, { length = 0 } = {}): void => console.log(`${what} ${length}`);

const capture: Capture = {
  directSet: null,
  updateSets: async ({ route }) => say("updated", route),
  async steer() {},
  async [Symbol.asyncDispose]() {},
};

const options = { autoRoute: true, autoRedirect: false } as CaptureOptions;
const tun: Tun = await Tun.open(bareSettings(device, { capture: options, routeSets: ["around"] }), {
  ...BARE_ENV,
  prefixesOf: () => provided,
  openCapture: async ({ routeSet }) => {
    say("opened", routeSet ?? []);
    if (++opened > 1) {
      provided = [{ bytes: Uint8Array.of(192, 0, 2, 0), bits: 24 }];
      await tun.updateSets();
    }
    return capture;
  },
});
tun.activate();
