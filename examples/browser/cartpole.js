// CartPole as Gymnasium's CartPole-v1 has it: Barto, Sutton and Anderson 1983, "Neuronlike adaptive
// elements that can solve difficult learning control problems". Lengths in m, angles in radians.

export const SECONDS_PER_STEP = 0.02;
export const MOST_STEPS = 500;
export const EDGE = 2.4;

const GRAVITY = 9.8, CART_MASS = 1.0, POLE_MASS = 0.1, HALF_LENGTH = 0.5, FORCE = 10.0;
const MASS = CART_MASS + POLE_MASS, MOMENT = POLE_MASS * HALF_LENGTH;
const LARGEST_ANGLE = 12 * Math.PI / 180;

export class CartPole {
  constructor(random = Math.random) {
    this.random = random;
    this.restart();
  }

  /** Begin an episode near the balance. */
  restart() {
    [this.x, this.speed, this.angle, this.turning] =
      Array.from({ length: 4 }, () => (this.random() - 0.5) * 0.1);
    this.steps = 0;
  }

  /** What the policy sees: position, speed, angle and angular speed. */
  get state() {
    return Float32Array.of(this.x, this.speed, this.angle, this.turning);
  }

  get isOver() {
    return Math.abs(this.x) > EDGE || Math.abs(this.angle) > LARGEST_ANGLE
      || this.steps >= MOST_STEPS;
  }

  /** Push the cart to the left (0) or to the right (1) for one step. */
  step(action) {
    const force = action === 1 ? FORCE : -FORCE;
    const cos = Math.cos(this.angle), sin = Math.sin(this.angle);
    const pull = (force + MOMENT * this.turning ** 2 * sin) / MASS;
    const turn = (GRAVITY * sin - cos * pull)
      / (HALF_LENGTH * (4 / 3 - POLE_MASS * cos ** 2 / MASS));
    const push = pull - MOMENT * turn * cos / MASS;
    this.x += SECONDS_PER_STEP * this.speed;
    this.speed += SECONDS_PER_STEP * push;
    this.angle += SECONDS_PER_STEP * this.turning;
    this.turning += SECONDS_PER_STEP * turn;
    this.steps += 1;
  }
}
