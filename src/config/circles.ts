import { lastOf } from "#lib/at.ts";
/**
 * The circles that a walk from these names meets, each once and at most one a strongly connected part: names in order,
 * the first not repeated. Takes time in proportion to the names and their links.
 */
export function findCircles(
  starts: Iterable<string>,
  next: (name: string) => readonly string[],
): readonly (readonly string[])[] {
  const circles: string[][] = [];
  const done = new Set<string>();
  const inCircle = new Set<string>();
  for (const start of starts) {
    if (done.has(start)) continue;
    const way: string[] = [start];
    const onWay = new Map([[start, 0]]);
    const waiting: Iterator<string>[] = [next(start).values()]; // one a name of the way: no recursion, no depth limit
    while (way.length > 0) {
      const step = lastOf(waiting).next();
      if (step.done === true) {
        waiting.pop();
        const left = lastOf(way);
        way.pop();
        onWay.delete(left);
        done.add(left);
        continue;
      }
      const at = onWay.get(step.value);
      if (at !== undefined) {
        const circle = way.slice(at);
        if (!circle.some((name) => inCircle.has(name))) circles.push(circle);
        for (const name of circle) inCircle.add(name);
      } else if (!done.has(step.value)) {
        onWay.set(step.value, way.length);
        way.push(step.value);
        waiting.push(next(step.value).values());
      }
    }
  }
  return circles;
}
