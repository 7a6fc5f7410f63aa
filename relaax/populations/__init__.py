"""Populations: policies that are learnt at the same time, and a manager that changes them.

``membership``       a policy as a member, at its parameter server: its orders and its episodes
``service``          these behind gRPC, at the parameter server's port
``stub``             the client of that
``hyperparameters``  changes of keys of an algorithm's section
``members``          asks the members' parameter servers, for each manager
``vanilla_pbt``      decides which member takes the parameters of which other
``vanilla_pbt_manager``  carries out these decisions
``record``           who copied whom, in a table and a plot
``league``           how often a learner plays against which past version, and ratings
``league_manager``   sets these as numbers of the versions, also for self-play
``exploiter``        a learner that begins anew with the parameters of another policy
``meta_game``        equilibria of zero-sum games, and how far from one mixtures are
``cells``            in which order versions of two policies play one another
``psro``             the versions of two players, their payoffs and mixtures
``psro_manager``     lets versions play, and oracles learn against mixtures
``process``          the command ``relaax-population-manager``
"""
