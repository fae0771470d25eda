/** The short form of `npm run bench:governance`, which takes a budget and measures more. */
import * as cost from "./governance/cost.ts";
import * as quota from "./governance/quota.ts";
import * as rate from "./governance/rate.ts";
import * as relay from "./governance/relay.ts";

export const NAME = "governance";

export async function run(out: (line: string) => void): Promise<void> {
  await rate.run(out, 3);
  await quota.run(out, 1);
  await relay.run(out, 1);
  await cost.run(out, 100);
}
