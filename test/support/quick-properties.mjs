// Preloaded by `npm run check`: a property that does not say how many runs it has gets as few as `runs(100)` there.
import fc from "fast-check";

fc.configureGlobal({ numRuns: 20 });
