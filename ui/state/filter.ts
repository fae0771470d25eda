/** The items in whose text the filter stands, without regard to case and to blanks around it. */
export function matching<T>(items: readonly T[], filter: string, textOf: (item: T) => string): readonly T[] {
  const wanted = filter.trim().toLowerCase();
  return wanted === "" ? items : items.filter((item) => textOf(item).toLowerCase().includes(wanted));
}
