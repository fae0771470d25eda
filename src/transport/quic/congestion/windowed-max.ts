/** The greatest sample of the last rounds (Kathleen Nichols' filter): three candidates, each newer and smaller than the one before. */

interface Candidate {
  value: number;
  round: number;
}

export class WindowedMax {
  readonly #rounds: number;
  readonly #best: [Candidate, Candidate, Candidate] = [
    { value: 0, round: 0 },
    { value: 0, round: 0 },
    { value: 0, round: 0 },
  ];

  constructor(rounds: number) {
    this.#rounds = rounds;
  }

  get value(): number {
    return this.#best[0].value;
  }

  add(value: number, round: number): void {
    const [first, second, third] = this.#best;
    if (value >= first.value || round - third.round > this.#rounds) {
      for (const one of this.#best) set(one, value, round);
      return;
    }
    if (value >= second.value) {
      set(second, value, round);
      set(third, value, round);
    } else if (value >= third.value) set(third, value, round);
    if (round - first.round > this.#rounds) {
      set(first, second.value, second.round);
      set(second, third.value, third.round);
      set(third, value, round);
    } else if (second.round === first.round && round - second.round > this.#rounds / 4) {
      set(second, value, round);
      set(third, value, round);
    } else if (third.round === second.round && round - third.round > this.#rounds / 2)
      set(third, value, round);
  }
}

function set(candidate: Candidate, value: number, round: number): void {
  candidate.value = value;
  candidate.round = round;
}
