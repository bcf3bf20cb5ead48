// Keeps the latest text in sight, until the reader scrolls away from it.

const NEAR_PX = 40;

export class ScrollFollow {
  #follows = true;
  #lastTop = 0;

  /**
   * @param {HTMLElement} scroller
   * @param {HTMLElement} content what grows in it; while it is empty, there is nothing to follow
   * @param {HTMLButtonElement} jump leads back to the latest text
   */
  constructor(scroller, content, jump) {
    this.scroller = scroller;
    this.jump = jump;
    scroller.addEventListener("scroll", () => this.#onScroll(), { passive: true });
    // A wheel or finger that goes up leaves at once, however small the step.
    scroller.addEventListener("wheel", (event) => event.deltaY < 0 && this.#canScroll && this.#set(false), { passive: true });
    jump.addEventListener("click", () => this.toLatest());
    const follow = new ResizeObserver(() => {
      if (this.#follows && content.childElementCount) this.#toEnd();
      else this.#show();
    });
    follow.observe(content);
    follow.observe(scroller);
  }

  /** Follow again. */
  toLatest() {
    this.#set(true);
    this.#toEnd();
  }

  get #canScroll() {
    return this.scroller.scrollHeight > this.scroller.clientHeight;
  }

  get #isNearEnd() {
    const { scrollHeight, scrollTop, clientHeight } = this.scroller;
    return scrollHeight - scrollTop - clientHeight < NEAR_PX;
  }

  #toEnd() {
    this.scroller.scrollTop = this.scroller.scrollHeight;
    this.#lastTop = this.scroller.scrollTop;
  }

  #onScroll() {
    const top = this.scroller.scrollTop;
    if (top < this.#lastTop - 2 && !this.#isNearEnd) this.#set(false);
    else if (this.#isNearEnd && top > this.#lastTop) this.#set(true);
    this.#lastTop = top;
    this.#show();
  }

  /** @param {boolean} follows */
  #set(follows) {
    this.#follows = follows;
    this.#show();
  }

  #show() {
    this.jump.hidden = this.#follows || this.#isNearEnd;
  }
}
