/** What comes next, in the same turn where there is nothing to wait for. What it throws then is thrown here. */
export function continueWith<T, R>(
  value: T | Promise<T>,
  goOn: (value: T) => R | Promise<R>,
): R | Promise<R> {
  return value instanceof Promise ? value.then(goOn) : goOn(value);
}
