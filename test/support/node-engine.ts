import type { WireRecipe } from "#core/wire-recipe.ts";
import { LOOPBACK_V4, toDestination } from "#net/address/ip.ts";
import { DecidingEngine } from "./deciding-engine.ts";
import { until } from "./until.ts";

/** Everything leads through a node whose server has that port; all workers know it. */
export async function openNodeEngine(port: number, by: WireRecipe, threads = 1): Promise<DecidingEngine> {
  await using undo = new AsyncDisposableStack();
  const engine = undo.use(await DecidingEngine.open(threads));
  await until("the first version", () => engine.version > 0);
  engine.node = { server: toDestination(LOOPBACK_V4, port), recipe: by };
  engine.change([{ is: "always" }]);
  await until("all workers have the second", () => engine.dropped.length > 0);
  undo.move();
  return engine;
}
