/** A Controller on loopback with a core in memory. */
import { openController, type Controller, type ControllerOptions } from "#api/open-controller.ts";
import { SILENT, type Log } from "#core/log.ts";
import { OPEN_OPTIONS } from "./api-app.ts";
import { MemoryControl } from "./memory-control.ts";

export interface LiveController extends AsyncDisposable {
  readonly control: MemoryControl;
  readonly controller: Controller;
  /** Of the plain listener; 0 without one. */
  readonly port: number;
  readonly url: string;
}

export async function liveController(
  options: Partial<ControllerOptions> = {},
  log: Log = SILENT,
): Promise<LiveController> {
  const control = new MemoryControl();
  const listeners = { http: { host: "127.0.0.1", port: 0 } };
  const controller = await openController({ ...OPEN_OPTIONS, listeners, ...options }, control, log);
  const port = controller.endpoints.find(({ kind }) => kind === "http")?.port ?? 0;
  return {
    control,
    controller,
    port,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => controller[Symbol.asyncDispose](),
  };
}
