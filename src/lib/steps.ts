/** A long work that stops now and then, so that something else can run; it goes on with the next `next()`. */
export type Steps<T> = Generator<void, T, void>;

/** The whole work without a pause. */
export function atOnce<T>(steps: Steps<T>): T {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
