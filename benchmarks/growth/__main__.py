from benchmarks.growth.run import main

if __name__ == "__main__":
    main()
