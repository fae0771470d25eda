// Says whether the pinned runtime is behind the newest one of its major version: security fixes arrive by changing the pins
// in package.json (SECURITY.md). Ends with 0 whatever it finds, since what is pinned is what was tested.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

const { optionalDependencies } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
);

/** By number: 26.9.0 comes before 26.10.0. */
function isNewer(one, other) {
  const [a, b] = [one, other].map((version) => version.split(".").map(Number));
  const at = a.findIndex((part, index) => part !== b[index]);
  return at >= 0 && a[at] > b[at];
}

for (const [name, pinned] of Object.entries(optionalDependencies)) {
  const [major] = pinned.split(".");
  let published;
  try {
    const output = execFileSync("npm", ["view", name, "versions", "--json"], {
      encoding: "utf8",
      timeout: 30_000,
    });
    published = [JSON.parse(output)].flat();
  } catch {
    console.log(`runtime: ${name} ${pinned} is pinned; what is published cannot be asked here`);
    continue;
  }
  const newer = published.filter((version) => version.startsWith(`${major}.`) && isNewer(version, pinned));
  const newest = newer.reduce((best, version) => (isNewer(version, best) ? version : best), pinned);
  if (newest === pinned) console.log(`runtime: ${name} ${pinned} is the newest of ${major}`);
  else console.log(`runtime: ${name} ${pinned} is pinned, BEHIND ${newest}`);
}
