import type { Choices } from "#core/group.ts";

/** Choices that outlive a reload, but not the process (`profile.store-selected: false`). */
export class MemoryChoices implements Choices {
  readonly #selected = new Map<string, string>();

  selected(group: string): string | null {
    return this.#selected.get(group) ?? null;
  }

  select(group: string, member: string): void {
    this.#selected.set(group, member);
  }

  unselect(group: string): void {
    this.#selected.delete(group);
  }
}
