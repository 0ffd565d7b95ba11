"""How long to search: every constant that trades time for quality, each with what it was chosen by.

What is true (roundings, tolerances of a claim, evidence) stays with its formula.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Efforts of the stages of a fit."""

    # -- The whole -------------------------------------------------------------------------------------------------------------------------
    # The annealing sees at most this many items when the number of components is asked for, and per component otherwise: transitions
    # depend on covariances, which a sample gives, and the refinement sees everything.
    rank_items: int = 2048
    anneal_items: int = 128
    anneal_items_per_component: int = 12
    # Passes after which labels of components that are far apart no longer change. Without a look at that, 30 000 documents were alternated
    # on a few of them to no avail for a tenth of the time of the fit.
    direct_passes: int = 4
    # Swaps are searched for on samples of these sizes, as far as there are more items, before all are seen. The best components of a
    # small sample are not those of all items: with the smallest alone, gamma noise of 70 000 items ended 0.3 % above the best of five
    # k-means runs, with all three 0.5 % below.
    search_items: tuple[int, ...] = (4096, 16384, 65536)
    # The larger ones as far as one pass of distances takes no more multiplications than this: of 100 000 × 64 items in 300 groups, the
    # largest took 5 s and gained nothing.
    sample_work: float = 1e9
    # Starts on the first of them that owe nothing to the annealing. Of 12 000 sparse documents of 50 topics, the annealing alone had found
    # none of the topics after 12 s.
    sample_starts: int = 2
    # Gains on a sample in a row that are none on all items, after which it is left. Of 30 000 documents, 4096 gained nine times in 19 s,
    # and all of them never.
    sample_vain: int = 2
    # Under bounds they are searched for on so many; components that leave a larger share of the items out of the bounds than this are
    # one start of two, and a good one will do. On more than some thousand items the best free components take many times as long as all
    # that follows: they are sought only where the bounds hardly matter.
    bounded_search_items: int = 512
    far_out: float = 0.1
    easy_items: int = 1024
    hardly_out: float = 0.02
    # Under bounds starts are compared on samples: the largest is this share of the items, each smaller one a part of the next, and the
    # smallest has at most so many. On 24 problems of 8000 to 30 000 items costs ended 0.3 % lower than on samples that began with 2048,
    # and 0.7 % higher at worst.
    rehearsal_share: float = 0.4
    rehearsal_growth: int = 4
    rehearsal_items: int = 4096
    # Centres of a sample are at rest when one more step would move none by more than this, relative to the noise that the sample has:
    # 400 000 items took 29 s instead of 37, and ended no higher.
    rehearsed: float = 0.25
    # A swap is tried on the first of them for this many items that there are, and so many at most: it should cost less than what
    # follows. With six instead of 24, a million items ended 0.4 % higher.
    try_items: int = 4096
    max_tries: int = 24
    # The annealing goes so many components, or times as many, beyond the number that the data give: how long that one lasts is read
    # beside those that chance makes.
    room: int = 4
    rooms: float = 1.5
    # Items from which the plane of the history is taken, and numbers where they are wide: of 100 000 dimensions, 128 took 8 s.
    plane_items: int = 128
    plane_numbers: int = 1 << 21
    # What follows the search is counted in first answers (a sketch tried on all items) and in passes (last labels, scales, the
    # certificate).
    end_answers: float = 1.0
    end_passes: float = 8.0
    # A time limit may be exceeded by this many seconds, or this share of it.
    grace_seconds: float = 0.5
    grace: float = 0.1
    # Passes at one temperature where the number of components is given and the annealing is only a start.
    loose_passes: int = 4

    # -- Annealing -------------------------------------------------------------------------------------------------------------------------
    # Where children part slowly, as many rounds of passes more.
    split_rounds: int = 4
    # Looks between the β before and after a transition before it is taken where it is.
    max_looks: int = 12
    # How often the step after a refused split is doubled.
    max_refusals: int = 4

    # -- Phase transitions -----------------------------------------------------------------------------------------------------------------
    # Passes that a critical value may take.
    critical_passes: int = 16
    # Places from which children far from all centres are looked for, and the steps taken from each.
    child_places: int = 32
    place_steps: int = 3

    # -- Alternation -----------------------------------------------------------------------------------------------------------------------
    # After this many passes, an alternation whose cost would stay above the bound even if it fell thirty times as much again as in its
    # last pass is given up. At four times, swaps that pay were given up on continuous data, where the alternation is slow.
    patience: int = 3
    optimism: int = 30
    # Under bounds, where a pass takes several times as long, ten times as much: of the 40 larger problems of the benchmark `bounded costs`
    # one ended 0.2 % higher than with thirty, one 1.6 % lower.
    bounded_optimism: int = 10
    # An alternation of more items than this whose cost falls by less than this fraction gathers momentum. On eight problems of 60 000 to
    # 200 000 items it took 10 to 118 passes instead of 12 to 510, and none ended higher; few items are at rest soon enough.
    brief_items: int = 4096
    slow: float = 1e-4
    # On many items an alternation ends when its cost falls by less than this fraction and its centres are steady: of a million items in
    # groups of unequal size the error ended 6e-7 higher, after an eighth of the passes.
    little: float = 1e-7
    # Of many items the centres of given labels are at rest when one more step would move none by more than this, relative to the spread of
    # its own component: it would gain 1e-8 of the error of that. To rounding, lines of 150 000 documents took 27 passes, with 6 the squared
    # error is 6e-14 of itself higher.
    still: float = 1e-4
    # Bound on the passes that bring a line to rest: each gains a digit where its items lie within some 30 degrees.
    sharpening_passes: int = 50

    # -- Alternations side by side ---------------------------------------------------------------------------------------------------------
    # As many alternations at once as keep this many distances; more leave the cache.
    at_once_distances: int = 1 << 16
    max_at_once: int = 32
    batch_passes: int = 300

    # -- Refinement ------------------------------------------------------------------------------------------------------------------------
    # On a sample a result counts as better when the cost falls by more than this fraction: smaller falls (most are of 1e-6, and each
    # begins the search anew) say nothing about all items.
    sample_gain: float = 1e-4
    # Items tried as places for a component.
    places: int = 128
    # On more items than this, or more stored numbers, only alternation and moves see all of them; the swaps were searched for on a sample.
    # Swaps over 22 million numbers took minutes.
    many_items: int = 1 << 16
    many_numbers: int = 1 << 23
    # A swap that raises the cost by more than this factor before anything adapts is not tried. On 43 problems the swaps that paid
    # started at most 0.3 above; on separated data all start a thousandfold above.
    hopeless: float = 0.5
    # Nor is one, of free components, that raises it by more than this many times what opening a component gains at best before anything
    # adapts. On the problems of the benchmark best_of_100 with more than 100 items it was at most 7 for the 300 swaps that paid; 20 000
    # items in 20 groups have 170, and 200 tries of them took 2 s.
    adapted: float = 20.0
    # A component reopened elsewhere inside itself must exchange items worth this fraction of its cost to be tried.
    stir: float = 0.02
    # Swaps tried before giving up: as many as this many multiplications allow, within bounds. On the same problems the longest run of
    # failures before a success that mattered was 118.
    swap_work: float = 8e8
    min_swaps: int = 8
    max_swaps: int = 200
    # Starts that owe nothing to the annealing, as many as this many multiplications in one pass of them all allow.
    start_work: float = 1e7
    max_starts: int = 200
    # With more components than this, and too many items for tries side by side, a swap is tried among the components next to those it
    # closes and opens, so many of each; such tries are cheap, so that there may be this many times as many. Chosen on one problem
    # (gamma, 2000 × 5, 100 components): at rest after 8 s of CPU time, 0.1 % below where tries over all items were, not yet at rest,
    # after 125 s. Ranking the swaps costs more than the tries, so that each component gets one at least: 100 000 × 64 items in 300 groups
    # were at the same rest after half the time.
    many_components: int = 40
    neighbours: int = 10
    local_tries: int = 3
    # A swap that ends this close above the best, relative to items per component, gets its single moves before it is judged.
    nearly: float = 0.01
    nearly_items: float = 0.3
    # A try under bounds, with its exact assignments, costs as much as this many free ones; tries it gets at least, and starts that owe
    # nothing to the annealing at most.
    assignment_passes: int = 100
    min_bounded_swaps: int = 10
    max_bounded_starts: int = 40
    # Rounds of single moves, as many as this many multiplications allow; and as many of them for a swap on trial.
    move_work: float = 1e8
    min_rounds: int = 2
    max_rounds: int = 60
    trial_rounds: int = 8
    # Up to this many items, moves that the estimate does not favour are looked at exactly before the search ends.
    few_items: int = 256
    # Under bounds on more items than this, the relative gain of a round after which another one is worth it; and an alternation ends when
    # its centres are steady, as below. Of the 40 larger problems of the benchmark `bounded costs` costs ended 0.08 % lower on average, and
    # 0.14 % higher at worst.
    dear_items: int = 1024
    worth: float = 3e-4
    # Passes of the two-way alternation that splits every component.
    split_passes: int = 6
    # Items, the farthest first, towards which every component is split in exchange for a merger; and mergers that go with each split.
    # Of eight sets of 1200 to 3000 documents with more topics than components, two ended 0.2 and 0.5 % above the best of ten k-means runs
    # with three such items, and none with six; regroupings that are not sure to gain added nothing.
    mergers: int = 4
    halvings: int = 6

    # -- Samples ---------------------------------------------------------------------------------------------------------------------------
    # Equal items are merged where a copy of all items takes no more numbers than this.
    merge_numbers: int = 1 << 22
    # Centres about which a sample is drawn where there are no components yet, and the items among which they are found.
    rough_centers: int = 16
    rough_items: int = 1024

    # -- The span of the items -------------------------------------------------------------------------------------------------------------
    # Items that are held in their span, at most; so many multiplications it may take to find it (some seconds of one core), and so many
    # bytes of items are formed at a time.
    span_items: int = 2048
    span_work: float = 1e11
    span_bytes: int = 8 << 20
    # Of a second that is left of a time limit, so many multiplications may go into it: some tenth of what a core does.
    span_rate: float = 1e9

    # -- A sketch of wide items ------------------------------------------------------------------------------------------------------------
    # Dimensions from which items are sketched, at least and for each direction of the sketch; directions beyond the number of
    # components; and passes that find them. Of 30 000 documents of 50 topics, k-means in 60 directions began nearer to the topics with four
    # passes than with two (adjusted Rand index 0.60 to 0.67 against 0.53 to 0.55), and in 30 directions it found few of them.
    sketch_dims: int = 1024
    sketch_ratio: int = 8
    sketch_directions: int = 10
    sketch_passes: int = 4
    # All but the last of these see so many items at most, where those store no more numbers than this.
    sketch_items: int = 1 << 16
    sketch_numbers: int = 1 << 24
    # A result in a sketch counts as better when the cost there falls by more than this fraction: it is some tenth of the whole cost. A
    # finer search, with one in all dimensions behind it, lowered the error of 30 000 documents by 3e-4, and took several times as long.
    sketch_gain: float = 1e-3

    # -- Assignment under bounds -----------------------------------------------------------------------------------------------------------
    # On more items than this starts are compared on samples, and only alternation sees all of them.
    many_bounded_items: int = 4096
    # Centres are steady when one more step would move none by more than this, relative to the spread of its own component. A certificate
    # allows 2e-3; rounding and the last labels need some of it.
    steady: float = 1e-3
    # Until the centres are nearly steady, this share of the items may be out of place: the last ones take most of the time.
    loose: float = 1e-3
    nearly_steady: float = 4.0
    # Costs held between the passes of one assignment; more are computed anew in every pass.
    held_costs: int = 1 << 23
    # Costs whose assignment is compiled, at most: its moves look at all items of a component, where others look at those near a border. Of
    # 20 components, 100 000 items took half the time, 200 000 three quarters, 400 000 nearly as long.
    compiled_costs: int = 1 << 22

    # -- All partitions --------------------------------------------------------------------------------------------------------------------
    # Up to this many items all partitions are compared: n items have 3ⁿ pairs of a set and a subset, nine some 20 000.
    every_partition: int = 9

    # -- Prices ----------------------------------------------------------------------------------------------------------------------------
    # Newton steps for the prices at one set of centres.
    price_steps: int = 30
    # Alternations of prices and centres at one temperature, and at the last one.
    alternations: int = 10
    kkt_alternations: int = 100
    # Items on which the prices are annealed, at least and per component; the exact assignment sees all.
    sample_items: int = 256
    sample_per_component: int = 16

    # -- Balls -----------------------------------------------------------------------------------------------------------------------------
    # Steps of EM.
    em_steps: int = 30

    # -- The number of components ----------------------------------------------------------------------------------------------------------
    # Balls are tried up to this many times the largest number of components: a part that is no ball takes several.
    balls_per_component: int = 2
    # Numbers of balls tried after the best one: a likelihood that fell for so long does not come back.
    ball_patience: int = 6

    # -- Directions ------------------------------------------------------------------------------------------------------------------------
    # Numbers in which the edge of noise is looked for, and items at least. How noise differs by item needs a rough edge only: on 4096 of
    # 50 000 sparse cells that takes 2 s instead of 7.
    edge_numbers: int = 1 << 23
    rough_edge_numbers: int = 1 << 21
    edge_items: int = 256
    # Numbers in which steps of the values are looked for.
    grid_numbers: int = 1 << 24

    # -- Confidence ------------------------------------------------------------------------------------------------------------------------
    # Draws from the model of the null hypothesis: p-values are multiples of one hundredth.
    draws: int = 99
    # Items of a draw, at most: more make the test no more telling than its model is true.
    draw_items: int = 1024
    # Steps that bring a model to a draw, as they brought it to the data; and steps of the two normals along one axis.
    model_steps: int = 2
    axis_steps: int = 16
    # Halves of the items, and steps of EM on each.
    halves: int = 6
    half_steps: int = 4

    # -- The edge of noise -----------------------------------------------------------------------------------------------------------------
    # Draws of the signs, at least and at most, and the numbers that they take together: of large matrices the edge varies little.
    sign_draws: tuple[int, int] = (3, 8)
    draw_numbers: int = 1 << 22


BUDGET = Budget()
